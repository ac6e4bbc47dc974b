/* Files are made in a folder of their own and moved into their place when all of them are there. */
#include "compile/internal.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders that go when the call ends ---- */
static void remove_folder(void *path) {
  DIR *d = opendir(path);
  for (const struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      unlinkat(dirfd(d), e->d_name, 0);
  if (d) closedir(d);
  rmdir(path);
}
static char *make(void *user, tarn_ctx *cx, const char *pattern) {
  (void)user;
  char *path = tarn_strdup(cx, pattern);
  if (!mkdtemp(path)) tarn_raise(cx, TARN_IO, "%s: %s", path, strerror(errno));
  tarn_defer(cx, remove_folder, path);
  return path;
}
static void stays(void *user, tarn_ctx *cx, const char *path) {
  (void)user;
  tarn_keep(cx, path);
}
static void call(void *user, tarn_ctx *cx, tarn_fn *fn, void *arg) {
  (void)user;
  fn(cx, arg);
}
static const tarn_folders plain = {NULL, make, stays, call};
static const tarn_folders *folders(const tarn_compile_options *o) {
  return o->folders ? o->folders : &plain;
}

/* In the folder that the files are for, or, while there is none, beside it: there they can be moved
 * from. */
const char *comp_workshop(tarn_ctx *cx, const tarn_compile_options *o) {
  const tarn_folders *f = folders(o);
  struct stat st;
  if (!o->dir) return f->make(f->user, cx, "/tmp/tarn-XXXXXX");
  size_t n = strlen(o->dir);
  while (n > 1 && o->dir[n - 1] == '/') n--;
  while (n && o->dir[n - 1] != '/') n--;
  bool there = !stat(o->dir, &st);
  if (!there && errno != ENOENT) tarn_raise(cx, TARN_IO, "%s: %s", o->dir, strerror(errno));
  if (there && !S_ISDIR(st.st_mode)) tarn_raise(cx, TARN_IO, "%s: %s", o->dir, strerror(ENOTDIR));
  return f->make(f->user, cx,
                 there ? tarn_format(cx, "%s/.new-XXXXXX", o->dir)
                       : tarn_format(cx, "%.*s.new-XXXXXX", (int)n, o->dir));
}

/* ---- into place ---- */
typedef struct move {
  const char *from, *to;
} move;
typedef struct finish {
  tarn_compiled *c;
  const char *from;
  const tarn_buf *chain;
  TARN_VEC(tarn_artefact) made;
  TARN_VEC(move) move; /* known before the first is done: no memory is asked for between them */
} finish;
typedef void each_file(tarn_ctx *cx, finish *f, const char *name);
/* Does a row before this one write it too? */
static bool named_before(uint32_t row, const char *name) {
  for (uint32_t i = 0; i < row; i++)
    for (const char *const *other = tarn_target_at(i)->file; *other; other++)
      if (!strcmp(*other, name)) return true;
  return false;
}
/* What any compile may write, the report last. */
static void visit_files(finish *f, each_file *visit) {
  static const char *const always[] = {"program.tarn", "report.json", NULL};
  tarn_ctx *cx = tarn_lang_ctx(f->c->L);
  const tarn_target *t;
  for (uint32_t i = 0; (t = tarn_target_at(i)); i++)
    for (const char *const *name = t->file; *name; name++)
      if (!named_before(i, *name)) visit(cx, f, *name);
  for (const char *const *name = always; *name; name++) visit(cx, f, *name);
}
static void add_artefact(tarn_ctx *cx, finish *f, const char *name) {
  const char *path = tarn_format(cx, "%s/%s", f->from, name);
  struct stat st;
  if (stat(path, &st)) return;
  tarn_artefact a = {.name = name, .n = (size_t)st.st_size};
  if (f->c->o->dir) a.path = tarn_format(cx, "%s/%s", f->c->o->dir, name);
  else a.data = tarn_read_file(cx, path, &a.n);
  tarn_push(cx, &f->made, a);
}
static void add_move(tarn_ctx *cx, finish *f, const char *name) {
  move m = {tarn_format(cx, "%s/%s", f->from, name), tarn_format(cx, "%s/%s", f->c->o->dir, name)};
  tarn_push(cx, &f->move, m);
}
/* What this compile does not write goes, if an earlier one wrote it: a report lies beside it. */
static void move_files(tarn_ctx *cx, const finish *f) {
  bool ours = !access(tarn_format(cx, "%s/report.json", f->c->o->dir), F_OK);
  for (uint32_t i = 0; i < f->move.n; i++) {
    const move *m = &f->move.p[i];
    bool made = !access(m->from, F_OK);
    int failed = made ? rename(m->from, m->to) : ours && unlink(m->to) && errno != ENOENT;
    if (failed) tarn_raise(cx, TARN_IO, "%s: %s", m->to, strerror(errno));
  }
}
/* The whole folder at once, with the permissions that mkdir() gives: those of one made inside. */
static bool move_folder(tarn_ctx *cx, const char *from, const char *to) {
  struct stat st;
  const char *probe = tarn_format(cx, "%s/.mode", from);
  if (mkdir(probe, 0777)) return false;
  bool known = !stat(probe, &st);
  return !rmdir(probe) && known && !chmod(from, st.st_mode & 07777u) && !rename(from, to);
}
static void put_in_place(tarn_ctx *cx, void *arg) {
  const finish *f = arg;
  const tarn_compile_options *o = f->c->o;
  if (o->explain) tarn_write_file(cx, o->explain, f->chain->p ? f->chain->p : "", f->chain->n);
  if (!o->dir) return;
  if (access(o->dir, F_OK) && move_folder(cx, f->from, o->dir)) {
    folders(o)->stays(folders(o)->user, cx, f->from);
    return;
  }
  if (mkdir(o->dir, 0777) && errno != EEXIST)
    tarn_raise(cx, TARN_IO, "%s: %s", o->dir, strerror(errno));
  move_files(cx, f);
}

void comp_finish(tarn_compiled *c, const char *from, const tarn_buf *chain) {
  finish f = {.c = c, .from = from, .chain = chain};
  visit_files(&f, add_artefact);
  if (c->o->dir) visit_files(&f, add_move);
  folders(c->o)->undisturbed(folders(c->o)->user, tarn_lang_ctx(c->L), put_in_place, &f);
  c->artefact = f.made.p;
  c->nartefact = f.made.n;
}
