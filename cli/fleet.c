/* See fleet.h. */
#include "cli/fleet.h"
#include "tune/child.h"
#include "tune/jobs.h"

static void remove_folder(void *dir) { tarn_folder_remove(dir); }
static void say(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "tarn: %s\n", line);
}
tarn_fleet *cli_fleet_open(tarn_ctx *cx, const cli_fleet *o) {
  tarn_fleet_options f = {.url = o->url,
                          .creds = o->creds,
                          .tlsca = o->tlsca,
                          .insecure = o->insecure,
                          .silence = o->silence,
                          .patience = o->patience,
                          .say = say};
  return tarn_fleet_open(cx, &f);
}
cli_fleet_run cli_fleet_begin(tarn_ctx *cx, const cli_fleet *o, const tarn_hw *hw, const char *db,
                              const char *run, void (*watch)(void *, const tarn_fleet_view *),
                              void *user) {
  tarn_fleet *f = cli_fleet_open(cx, o); /* before the store: nothing is left where none answers */
  char *dir = tarn_new(cx, TARN_FOLDER);
  tarn_folder_make(cx, "fleet", dir);
  tarn_defer(cx, remove_folder, dir);
  cli_fleet_run r = {.db = tarn_format(cx, "%s/run.db", dir)};
  tarn_store *s = tarn_store_open(cx, db);
  tarn_jobs_begin(s, run, tarn_hw_key(hw, cx), r.db);
  r.by = tarn_fleet_measurer(f, s, hw, watch, user);
  return r;
}
