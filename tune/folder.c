/* Folders of processes that may be killed: see child.h. */
#include "tune/child.h"
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st, (void)flag, (void)f;
  return remove(path);
}
void tarn_folder_remove(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }
/* Of processes that are no more. */
static void sweep(const char *head) {
  DIR *tmp = opendir("/tmp");
  for (const struct dirent *e; tmp && (e = readdir(tmp));) {
    if (strncmp(e->d_name, head, strlen(head)) != 0) continue;
    long pid = strtol(e->d_name + strlen(head), NULL, 10);
    char path[sizeof e->d_name + 8];
    snprintf(path, sizeof path, "/tmp/%s", e->d_name);
    if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) tarn_folder_remove(path);
  }
  if (tmp) closedir(tmp);
}
void tarn_folder_make(tarn_ctx *cx, const char *kind, char path[TARN_FOLDER]) {
  char head[TARN_FOLDER];
  snprintf(head, sizeof head, "tarn-%s-", kind);
  sweep(head);
  snprintf(path, TARN_FOLDER, "/tmp/tarn-%s-%ld-XXXXXX", kind, (long)getpid());
  if (mkdtemp(path)) return;
  path[0] = 0;
  tarn_raise(cx, TARN_IO, "/tmp: %s", strerror(errno));
}
