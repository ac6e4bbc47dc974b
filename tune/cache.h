/* tarn cache: comprehensions as functions of this process, each compiled once (libtarn-tune).
 *
 *   tarn_cache *c = tarn_cache_open(cx, "tarn.db");
 *   tarn_compile_options o = tarn_compile_defaults();
 *   o.text = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";
 *   o.text_n = strlen(o.text);
 *   o.model = "mv";                                     names it in messages
 *   o.shapes = (tarn_texts){2, (const char *const[]){"M=128", "K=64"}};
 *   o.hw = tarn_hw_host(L, false);
 *   const tarn_call *f = tarn_cache_call(c, L, &o);
 *   f->run((const void *const[]){A, x}, (void *const[]){C}, workspace, NULL);
 *
 * The key of an entry is what the definition means (tarn_comprehension_key: names, remarks and
 * spaces do not count), the shapes, the options that change the code, the description of the target
 * and the version of tarn. Entries lie in an SQLite file, that of tarn_store_open() if one likes,
 * which processes share. What a process has called once costs it a hash of the text afterwards.
 *
 * Functions here raise (tarn_protect). */
#ifndef TARN_CACHE_H
#define TARN_CACHE_H
#include "access/judge.h"
#include "compile/compile.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_cache tarn_cache;
/* Opens or makes the file. Closed, with all that was called, when the enclosing protected call
 * ends; or, after tarn_keep(cx, cache), by tarn_cache_close(). */
TARN_API tarn_cache *tarn_cache_open(tarn_ctx *cx, const char *path);
TARN_API void tarn_cache_close(tarn_cache *c);

typedef enum tarn_found {
  TARN_FOUND_HERE,   /* this process has called it before */
  TARN_FOUND_STORED, /* it lay in the file */
  TARN_FOUND_NOT     /* it was compiled now */
} tarn_found;
typedef struct tarn_call {
  tarn_model_fn *run;
  uint32_t nin, nout;
  const tarn_port *in, *out; /* row-major, contiguous; in the order of the definition */
  uint32_t npair;            /* inputs that lie in outputs */
  const tarn_in_place *pair;
  uint64_t workspace; /* bytes that a run on o->threads threads (0: one) needs, aligned to 64 */
  bool injected;
  tarn_found found; /* of the last tarn_cache_call() */
} tarn_call;
/* The function of o->text, for the shapes, options and target that o has. L: whose description and
 * price o has. With a price it is compiled in L, else in memory that is given back. dir, emit,
 * dump, explain are not looked at. Lives as long as the cache; o->hw must too. */
TARN_API const tarn_call *tarn_cache_call(tarn_cache *c, tarn_lang *L,
                                          const tarn_compile_options *o);
/* Compiles it now, whatever the cache has, and puts it there, for processes that have not called it
 * yet: what `tarn tune` does with what it measured. An injected entry stays. */
TARN_API void tarn_cache_renew(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o);

/* A hand-written function in the place of the compiled one: a shared object with the symbol
 *   int tarn_run(const void *const *in, void *const *out, void *workspace, struct tarn_rt_pool
 * *pool) which gets no workspace; or a model.so of another compile of the same inputs and outputs.
 * check: its values are compared with the interpreter's first; raises TARN_NO, and nothing is
 * stored, if they differ. */
TARN_API void tarn_cache_inject(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o,
                                const void *so, size_t n, bool check);
/* The values of tarn_cache_call()'s function against the interpreter's, on random inputs. */
TARN_API tarn_verdict tarn_cache_check(tarn_cache *c, tarn_lang *L, const tarn_compile_options *o,
                                       uint64_t seed);

/* A tensor as the caller has it: strides in elements, NULL: row-major without gaps (as in DLPack).
 */
typedef struct tarn_strided {
  void *data;
  const int64_t *stride;
} tarn_strided;
/* One run on such tensors; those that are not row-major are copied. Makes its own workspace. */
TARN_API void tarn_call_run(tarn_ctx *cx, const tarn_call *f, const tarn_strided *in,
                            const tarn_strided *out, struct tarn_rt_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
