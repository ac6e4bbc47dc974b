/* tarn compile: a model in, a program out; what `tarn compile` does, as a library
 * (libtarn-codegen).
 *
 *   tarn_lang *L = tarn_lang_new(cx);
 *   tarn_compile_options o = tarn_compile_defaults();
 *   o.model = "digits.onnx";
 *   o.hw = tarn_hw_load(L, "x86-64-v3");
 *   o.dir = "digits";
 *   const tarn_compiled *c = tarn_compile(L, &o);       digits/model.so, model.h, report.json …
 *   tarn_loaded *m = tarn_load(cx, o.dir);              runs in this process: lower/lower.h
 *
 * docs/library.md has it as a whole program.  The language L holds all terms of one compile, in its
 * context cx.
 *
 * Errors.  Functions here raise, so they are called inside tarn_protect() (base/base.h), whose
 * status and tarn_message() say what was wrong: TARN_USAGE an option, TARN_BAD_INPUT a model, rule,
 * description or schedule, TARN_NO_RESULT no program within the limits, TARN_IO the system.  An
 * option is named as the program's: --emit.
 * Warnings are collected in the context.  Nothing is printed.
 *
 * Ownership.  Results lie in the arena of the context.  Options are read where they are: what they
 * point to must live as long as the result is used.
 *
 * What is not known here enters as a value: a description of this machine (tarn_hw_host() of
 * libtarn-tune makes one), a learned price (tarn_price of price/price.h; tarn_learned() and
 * tarn_measured() of libtarn-tune make one). */
#ifndef TARN_COMPILE_H
#define TARN_COMPILE_H
#include "access/judge.h"
#include "compile/target.h"
#include "extract/extract.h"
#include "model/model.h"
#include "plan/plan.h"
#include "rules/rules.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- options */

typedef struct tarn_texts {
  uint32_t n;
  const char *const *text;
} tarn_texts;

/* ---- what can be looked at between two steps ---- */
typedef enum tarn_dump {
  TARN_DUMP_TERMS = 1,      /* what the importer made */
  TARN_DUMP_FORM = 2,       /* every computation as a nest */
  TARN_DUMP_PHASES = 4,     /* iterations and rules of the saturation */
  TARN_DUMP_GRAPH = 8,      /* kernels between buffers, with prices */
  TARN_DUMP_SCHEDULES = 16, /* signatures, each with the schedule of its kernel */
  TARN_DUMP_PLAN = 32,      /* the loops as they are emitted */
  TARN_DUMP_OFFLOAD = 64    /* what an accelerator runs and how, and why not the rest */
} tarn_dump;
/* "terms,plan" as a set; NULL: none. Raises TARN_USAGE with the names there are. */
TARN_API unsigned tarn_dump_parse(tarn_ctx *cx, const char *list);

/* ---- where files are made ---- */
/* The files of a compile are made in a new folder and moved into their place when all of them are
 * there: a compile that fails leaves everything as it was. A program that ends on a signal gives
 * functions of its own, to remove such folders then. */
typedef struct tarn_folders {
  void *user;
  /* Makes a folder of this pattern (…XXXXXX, as mkdtemp) that goes, with the files in it, when the
   * enclosing protected call ends. Raises. */
  char *(*make)(void *user, tarn_ctx *cx, const char *pattern);
  /* The folder, made last, has been moved away: it stays. */
  void (*stays)(void *user, tarn_ctx *cx, const char *path);
  /* Calls fn(cx, arg), protected; no signal ends the process meanwhile. Raises what that raises. */
  void (*undisturbed)(void *user, tarn_ctx *cx, tarn_fn *fn, void *arg);
} tarn_folders;

/* ---- schedules handed in ---- */
/* A canonical kernel and the schedule that it shall have; where: for messages, "FILE:LINE:COL". */
typedef struct tarn_given {
  tarn_plan_choice k;
  const char *where;
} tarn_given;
/* Reads what the dump of schedules prints: signatures, each followed by its schedule. Raises
 * TARN_BAD_INPUT "FILE:LINE:COL: reason", for one that is not legal too. hw: whose row, or its
 * host's, checks them.
 */
TARN_API uint32_t tarn_given_read(tarn_lang *L, const tarn_hw *hw, const char *text, size_t n,
                                  const char *file, const tarn_given **out);

typedef struct tarn_compile_options {
  /* ---- the model ---- */
  const char *model; /* a file: .onnx, .tc, .term or .tarn (model/model.h) */
  const char *text; /* NULL, or the text of a comprehension; `model` is its name in messages then */
  size_t text_n;
  const void *onnx; /* NULL, or an ONNX ModelProto in memory, which names no other file */
  size_t onnx_n;
  /* "NAME=1,3,224,224" binds a dynamic shape, "NAME=1" a symbolic dim; "NAME=1,4,16" and
   * "NAME=1..64" of a dim, and "NAME=1..64,3,224,224": one program for all of these sizes */
  tarn_texts shapes;
  tarn_texts sets;    /* "NAME=VALUE" makes an input a constant */
  tarn_texts outputs; /* "last", "NAME=last": tarn_model_options */
  const char *def;    /* of a file of comprehensions: which one; NULL: the only one */
  /* Which inputs lie in which outputs, and are written in place (tarn_in_place): "IN=OUT" by names,
   * or by patterns, in which * stands for the same on both sides; "none"; n = 0: the caches of a
   * decoder, outputs that are an input with new rows behind it, which is read no other way (of one
   * size, or with cache_rows). One that cannot be so is TARN_BAD_INPUT. */
  tarn_texts caches;
  int64_t cache_rows; /* for which their buffers have room; 0: as many as the output has */
  bool allow_copies;  /* a statement of one may read what it writes, as it was before */

  /* ---- the machine ---- */
  const tarn_hw *hw;       /* needed. One of a kind without an emitter is refused at once */
  const tarn_hw *here;     /* NULL, or this machine: the host's part of an accelerator's program is
                              made for it too, to be run with the simulator (here.so); that of a
                              GPU's is made for it (model.so; NULL: --emit ptx alone) */
  uint32_t threads;        /* that the program will have; 0: all units of the description */
  const tarn_price *price; /* of kernels; NULL: the analytic one */

  /* Budgets, in bytes: of a CPU's workspace, without inputs, outputs, constants and what each
   * thread needs for itself (PREFIX_WORKSPACE in model.h); one size. For each the fastest program
   * found that fits is in the report; the last one's is emitted, or TARN_NO_RESULT says how much is
   * missing. */
  uint32_t nram;
  const int64_t *ram;

  /* ---- schedules ---- */
  /* Which kernels there are is chosen without them. A kernel of the program with one of these
   * signatures gets that schedule; one whose signature no kernel has is TARN_BAD_INPUT. */
  uint32_t ngiven;
  const tarn_given *given;

  /* ---- rules ---- */
  tarn_rule_class numerics; /* the strongest class of rules used; default TARN_RULE_REASSOC */
  double rtol;              /* approx: the largest error bound of a rule; default TARN_RTOL */
  tarn_texts rules;         /* files of rules, or shipped families over access patterns, beside
                               the shipped rules over kernels. Rules over access patterns run
                               first, on the terms as imported */
  tarn_texts no_rules;      /* families or single rules that are left out */
  tarn_texts only_rules;    /* files instead of the shipped ones; n = 0: the shipped ones */

  /* ---- limits: what is reached in them is used, and the report names the one that struck ---- */
  uint64_t nodes; /* e-nodes; 0: those of tarn_sat_defaults() */
  uint32_t iters; /* iterations; 0: the same */
  double seconds; /* of all of it; 0: none, and then equal input gives an equal program. Rules and
                     selection have the first seven tenths; TARN_NO_RESULT where there is no program
                     when it ends */

  /* ---- what is emitted ---- */
  const char *emit; /* a word of the target's row: "so", "o", "ll" for a CPU; NULL: its default */
  const char *constants; /* "object": in it; "file": in model.weights, which a program that links
                            the object maps or reads; NULL: object */
  const char *name;      /* prefix of the symbols in C; NULL: from the model's file name */
  const char *dir;       /* folder for the files, made when missing; NULL: they stay in memory */
  const char
      *explain; /* a file for the chain of rewrites from the model to the program; NULL: no */
  bool reasons; /* keep reasons for tarn_compile_explain(); `explain` does so by itself */

  /* ---- watching ---- */
  unsigned dump; /* set of tarn_dump */
  /* Gets each text that `dump` asks for, as soon as it is there; name: "terms". */
  void (*sink)(void *user, const char *name, const char *text, size_t n);
  /* Asked often, where the context has no such question (base/limit.h); true: the compile raises
   * TARN_NO_RESULT. NULL: never. */
  bool (*interrupted)(void *user);
  void *user;
  const tarn_folders *folders; /* NULL: they go when the call ends, not when the process does */
} tarn_compile_options;
/* Where a default is not 0. */
TARN_API tarn_compile_options tarn_compile_defaults(void);

/* ---------------------------------------------------------------- result */

typedef struct tarn_artefact {
  const char *name; /* "model.so", "model.h", "program.tarn", "report.json" … */
  const char *path; /* of the file; NULL: no folder was given */
  const char *data; /* its bytes, when no folder was given; else NULL */
  size_t n;         /* bytes */
} tarn_artefact;

typedef struct tarn_compiled tarn_compiled;
/* The program that was found for a budget of memory. */
typedef struct tarn_budgeted {
  int64_t budget, bytes; /* more than the budget: it does not fit */
  double seconds;        /* predicted */
  double traffic, flops; /* bytes that its kernels read and write, and operations */
} tarn_budgeted;
struct tarn_compiled {
  tarn_lang *L;
  const tarn_compile_options *o;
  const tarn_target *target;
  const tarn_emission *emission;
  bool apart;       /* its constants are in a file of their own */
  const char *name; /* prefix of the symbols in C */
  struct {
    double import, saturate, extract, lower;
  } seconds; /* that the steps took */

  /* of tarn_compile_load() */
  tarn_program *program; /* terms, inputs, outputs */
  tarn_model_report import;

  /* of tarn_compile_optimise() */
  tarn_saturation *saturation; /* its graph is there until the enclosing protected call ends, and
                                  no longer after tarn_compile(); the report stays */
  const tarn_domain *range;    /* of the program's inputs: tarn_input_domains() */
  const tarn_sat_report *rewriting;
  const tarn_ruleset *rules, *plain; /* the second: without o->rules; NULL: not needed */
  tarn_sat_use *uses; /* by rule: its steps in the chains from the outputs to what was chosen; NULL:
                         reasons were not kept */
  tarn_rule_trust
      *trust;          /* by rule, of those that were asked for and are such steps; NULL likewise */
  const char **doubt;  /* why it is not proved */
  tarn_kprog *kernels; /* the kernel program: kernels with schedules, buffers (plan/schedule.h) */
  tarn_picks *picks;
  tarn_kgraph_report choice, *counted; /* the second: what its program is counted in yet */
  bool without_rules;                  /* the program without o->rules is cheaper, and chosen */
  double price_with_rules; /* predicted, of the selection with all rules; INFINITY: none in time */
  tarn_extraction *extraction; /* NULL but between its two steps */
  uint32_t nbudget;
  tarn_budgeted *budget;      /* by o->ram */
  struct comp_layers *layers; /* equal layers that were compiled once; NULL: none */
  tarn_family *family;        /* NULL, or which it is a sample of, and its sizes */
  const int64_t *at;

  /* of tarn_compile_emit() */
  tarn_memory_plan *memory;
  const char *report; /* report.json: an object with the number TARN_REPORT_SCHEMA as "schema" */
  size_t report_n;
  uint32_t nartefact;
  const tarn_artefact *artefact;

  /* Of several sizes (o->shapes): this is the program of the largest, and these are all of them. */
  const tarn_lower_sizes *sizes; /* NULL: one program */
  tarn_compiled *const *programs;
  const tarn_texts *given; /* the shapes of all, as they were given */
  tarn_solver **solvers;   /* that they share: tarn_kgraph_options */
  uint64_t *left;          /* steps of the selection that are left to them; NULL: one program */
  uint32_t parts;          /* this one takes at most 1 / parts of these */
};
/* Grows only when a key changes its meaning; keys may be added without. */
#define TARN_REPORT_SCHEMA 1

/* ---------------------------------------------------------------- the call */

/* The machine of the options. Instructions that compute neither a product nor a map get the nests
 * that the options' rules find to equal their meanings: a kernel is compared with these. The steps
 * below do it themselves; schedules that are handed in for such kernels are read with it. */
TARN_API const tarn_hw *tarn_compile_units(tarn_lang *L, const tarn_compile_options *o);

/* All of it. When it raises, nothing is left of it, in o->dir or elsewhere. */
TARN_API const tarn_compiled *tarn_compile(tarn_lang *L, const tarn_compile_options *o);

/* The same step by step. The e-graph lies outside of the arena until the enclosing protected call
 * ends. */
TARN_API tarn_compiled *tarn_compile_load(tarn_lang *L, const tarn_compile_options *o); /* of one
                                                                                  size */
TARN_API void tarn_compile_optimise(tarn_compiled *c); /* saturates, selects */
TARN_API void tarn_compile_emit(tarn_compiled *c);
/* After tarn_compile_optimise(), with o->reasons: the chain of rewrites from each output of the
 * model to what was chosen (rules/rules.h checks it). */
TARN_API void tarn_compile_explain(tarn_compiled *c, tarn_buf *out);

/* The same, loaded into this process; no file stays. It is unloaded when the enclosing protected
 * call ends, or by tarn_unload(); tarn_loaded_function() is the function. */
TARN_API tarn_loaded *tarn_compile_loaded(tarn_lang *L, const tarn_compile_options *o);

/* ---------------------------------------------------------------- parts of it */

/* What the comprehension o->text means with the shapes and values of o: see
 * tarn_comprehension_key(). */
TARN_API const char *tarn_compile_key(tarn_ctx *cx, const tarn_compile_options *o);

/* The model alone, as o->model, shapes and sets say. r: NULL, or filled. */
TARN_API tarn_program *tarn_compile_import(tarn_lang *L, const tarn_compile_options *o,
                                           tarn_model_report *r);
/* The texts of o->shapes for one choice of the sizes in them, in their order. */
TARN_API tarn_texts tarn_compile_shapes_at(tarn_lang *L, const tarn_compile_options *o,
                                           const int64_t *size);
/* Does the folder hold an accelerator's program? Loads it, the host's part as here.so, with the
 * simulator as the accelerator: tarn_loaded_run() gives the values. Raises. */
TARN_API bool tarn_has_stream(tarn_ctx *cx, const char *dir);
TARN_API tarn_loaded *tarn_load_simulated(tarn_ctx *cx, const char *dir);
/* A folder that was compiled for a GPU, in the executor of sim/ptx.h; what does not run on the GPU
 * runs in the interpreter. _program: with what was counted, after a run. Raise. */
typedef struct tarn_executed tarn_executed;
TARN_API tarn_executed *tarn_execute_load(tarn_ctx *cx, const char *dir);
TARN_API uint32_t tarn_execute_ports(const tarn_executed *x, bool outputs, const tarn_port **ports);
TARN_API void tarn_execute_run(tarn_executed *x, const tarn_tensor *const *in,
                               tarn_tensor *const *out);
struct tarn_ptx_program;
TARN_API const struct tarn_ptx_program *tarn_execute_program(const tarn_executed *x);
/* Kernels by themselves as one program, emitted into an existing folder: to be measured, or to look
 * at their code. here: as in the options. exact: in the order that their reductions are written in.
 */
TARN_API const tarn_kprog *tarn_compile_kernels(tarn_lang *L, const tarn_hw *hw,
                                                const tarn_hw *here, const tarn_plan_choice *c,
                                                uint32_t n, bool exact, unsigned emit,
                                                const char *dir);

#ifdef __cplusplus
}
#endif
#endif
