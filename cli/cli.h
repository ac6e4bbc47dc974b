/* What the commands of the tarn program share. One file a command: int tarn_cmd_NAME(tarn_ctx *,
 * int, char **). */
#ifndef TARN_CLI_H
#define TARN_CLI_H
#include "access/judge.h"
#include "base/json.h"
#include "base/progress.h"
#include "compile/compile.h"
#include "hw/host/host.h"
#include <stdio.h>

/* ---- options ---- */
/* CLI_U32, CLI_THREADS: a uint64_t too, but at most 2^32-1 and CLI_MOST_THREADS. */
typedef enum {
  CLI_FLAG,
  CLI_STR,
  CLI_UINT,
  CLI_U32,
  CLI_THREADS,
  CLI_REAL,
  CLI_LIST,
  CLI_PAIR
} cli_kind;
#define CLI_MOST_THREADS 1024
typedef TARN_VEC(const char *) cli_list;
typedef struct cli_opt {
  const char *name;  /* "--hw" */
  const char *brief; /* "-o" or NULL */
  cli_kind kind;
  void *at; /* bool, const char *, uint64_t, double, cli_list, const char *[2] */
  const char *arg, *help;
} cli_opt;
/* Rows that several commands have: x has sets, def and copies. */
#define CLI_SET(x)                                                                                 \
  {"--set",   NULL,         CLI_LIST,                                                              \
   &(x).sets, "NAME=VALUE", "bind an input to numbers or a file (.npy, .pb)"},                     \
      {"--def", NULL, CLI_STR, &(x).def, "NAME", "which comprehension of a .tc file"}, {           \
    "--allow-copies", NULL, CLI_FLAG, &(x).copies, NULL,                                           \
        "a statement of a .tc file may read what it writes, as it was"                             \
  }
#define CLI_OUTPUTS(x)                                                                             \
  {                                                                                                \
    "--outputs", NULL, CLI_LIST, &(x).last, "[NAME=]last",                                         \
        "of the output NAME (default: of those of three dims) the last row alone"                  \
  }
/* Of what compiles a model: x has caches and cache_rows. */
#define CLI_CACHE(x)                                                                               \
  {                                                                                                \
      "--cache", NULL,                                                                             \
      CLI_LIST,  &(x).caches,                                                                      \
      "IN=OUT",  "input IN lies in OUT, which adds rows (default: a decoder's; or none)"},         \
  {                                                                                                \
    "--cache-rows", NULL, CLI_U32, &(x).cache_rows, "N", "room for N rows (default: the output's)" \
  }
/* Fills the options; what is left over goes to words. Raises TARN_USAGE. True when --help was asked
 * and printed. */
bool cli_parse(tarn_ctx *cx, const char *usage, const cli_opt *opts, int argc, char **argv,
               cli_list *words);

/* ---- commands: main.c ---- */
typedef struct cli_command {
  const char *name;
  int (*run)(tarn_ctx *cx, int argc, char **argv);
  const char *what, *example;
} cli_command;
extern const cli_command cli_commands[];    /* ends with a NULL name */
const char *cli_example(const char *usage); /* NULL: none */
/* cmd_completion.c: a command whose only argument is this and the name of a shell prints what
 * completes it. cli_parse() does it, by cli_complete(). */
#define CLI_COMPLETES "--completes="
void cli_each_command(tarn_ctx *cx, const char *shell);
void cli_complete(tarn_ctx *cx, const char *shell, const char *usage, const cli_opt *opts);

/* ---- JSON on stdout ---- */
#define CLI_SCHEMA 1
tarn_json *cli_json_new(tarn_ctx *cx); /* opens the object with "schema": 1 */
void cli_json_print(tarn_json *j);     /* closes it */

/* ---- files ---- */
/* Opens path for writing; closed, with its errors raised, by cli_close. A device is written in
 * place. */
FILE *cli_open(tarn_ctx *cx, const char *path);
void cli_close(tarn_ctx *cx, FILE *f, const char *path);

/* New folders for files, which go with them when the command ends, fails or is interrupted. */
extern const tarn_folders cli_folders;

/* ---- pages for a browser (--html) ---- */
FILE *cli_page_open(tarn_ctx *cx, const char *path, const char *title);
void cli_page_text(FILE *f, const char *s); /* with what HTML gives a meaning escaped */
void cli_page_head(FILE *f, const char *const *column,
                   uint32_t n);           /* opens a table; its rows are the caller's */
void cli_page_bar(FILE *f, double share); /* a cell */
void cli_page_close(tarn_ctx *cx, FILE *f, const char *path);

/* ---- time ---- */
double cli_median(double *v, size_t n); /* sorts v; n > 0 */

/* ---- compiling ---- */
/* What a kernel has to do, whatever its schedule. */
typedef struct cli_work {
  double flop, slots, products, read, write;
} cli_work; /* operations, lanes of vector instructions, of those that multiply, bytes, bytes */
/* What is known of one program of a compiled folder. */
typedef struct cli_program {
  const int64_t *size;      /* of a folder for several sizes: its own */
  tarn_rule_class numerics; /* that it was compiled in */
  double bound;             /* and the largest bound of approx ones */
  TARN_VEC(tarn_domain) in; /* of its inputs */
  TARN_VEC(cli_work) work;  /* what each kernel has to do */
} cli_program;
typedef struct cli_compile {
  const char *model, *dir, *name, *hw, *numerics, *emit, *constants, *explain, *html, *dump,
      *schedule;
  cli_list rules, no_rules, only_rules, shapes, sets, last;
  const char *def; /* of a file of comprehensions */
  bool copies;
  cli_list caches; /* --cache */
  uint64_t cache_rows;
  const char *ram;
  uint64_t nodes, iters, threads, seed;
  double seconds, rtol;
  cli_program is; /* of a compiled folder: its program; of several, the one that is selected */
  bool json;
  const char *price_file; /* --price: "analytic", a model file; NULL: the shipped one, if it fits */
  const char *db;         /* --db: a store of measurements */
  bool explores;          /* with it: for kernels to measure next */
  const tarn_price *price;   /* of this program, instead */
  const tarn_price *learned; /* by cli_options(): beside the store; NULL: the analytic one */
  const char *triple;        /* of a compiled folder */
  /* of a folder for several sizes; n = 0: it is for one */
  TARN_VEC(cli_program) programs;
  cli_list size_names;
  cli_list asked; /* --shape words that choose among them */
} cli_compile;
extern const cli_opt *cli_compile_options(tarn_ctx *cx,
                                          cli_compile *c); /* a table that ends with a NULL name */
const tarn_hw *cli_hardware(tarn_lang *L, const char *name); /* host, a shipped name, a file */
/* A machine that does not say what it hangs on hangs on this one. */
const tarn_hw *cli_hosted(tarn_lang *L, const tarn_hw *hw);
/* All that the library needs, in the arena; sets c->learned. */
const tarn_compile_options *cli_options(tarn_lang *L, cli_compile *c);
/* Removed when the command ends; of: what messages say instead of its name. */
const char *cli_scratch_folder(tarn_ctx *cx, const char *of);
const char *cli_spoken(tarn_ctx *cx, const char *message); /* without such names */
/* A compiled folder for DIR|MODEL: DIR itself when it holds a report.json, else MODEL compiled to a
 * folder that is removed at exit. *c is filled with what it was compiled from. */
const char *cli_folder(tarn_ctx *cx, const char *dir_or_model, cli_compile *c);
/* ---- folders for several sizes (sizes.c) ---- */
/* Of a report, or of what was just compiled. */
struct yajl_val_s;
void cli_read_program(tarn_ctx *cx, struct yajl_val_s *v, cli_program *p);
void cli_read_sizes(tarn_ctx *cx, struct yajl_val_s *report, cli_compile *c);
/* The strings of a list, where there is one. */
void cli_read_texts(tarn_ctx *cx, struct yajl_val_s *object, const char *key, cli_list *to);
void cli_take_program(tarn_ctx *cx, const tarn_compiled *r, cli_program *p);
void cli_take_sizes(tarn_ctx *cx, const tarn_compiled *r, cli_compile *c);
/* m runs these sizes from now on, and c->is is what is known of their program. Raises TARN_USAGE
 * when it has none for them. */
void cli_select(tarn_ctx *cx, tarn_loaded *m, cli_compile *c, const int64_t *size);
/* Selects what --shape words and the shapes of given inputs say. False: they say nothing, or the
 * folder is for one size. */
bool cli_select_asked(tarn_ctx *cx, tarn_loaded *m, cli_compile *c, const cli_list *given);
/* Some sizes to try, at most so many programs: the smallest, the largest and what lies between. Of
 * a range of rows other numbers too, by the seed. */
uint32_t cli_some_sizes(tarn_ctx *cx, const tarn_loaded *m, uint32_t most, uint64_t seed,
                        const int64_t ***size);
const char *cli_size_text(tarn_ctx *cx, const tarn_loaded *m); /* "batch=4", as selected */
void cli_size_json(tarn_json *j, const tarn_loaded *m);        /* {"batch": 4} as "size" */
/* Which input NAME=FILE is for, and the file; n: none. */
uint32_t cli_input_of(tarn_ctx *cx, uint32_t n, const tarn_port *ports, const char *given,
                      const char **file);

/* That, loaded. Raises TARN_BAD_INPUT for a folder that was compiled for a machine of another kind.
 */
tarn_loaded *cli_load(tarn_ctx *cx, const char *dir_or_model, cli_compile *c);
/* That of cli_folder(), loaded. */
tarn_loaded *cli_load_folder(tarn_ctx *cx, const char *dir, const cli_compile *c);
/* The model of a compiled folder, as a program. */
tarn_program *cli_reload(tarn_lang *L, const cli_compile *c);
/* Input tensors by -i NAME=FILE, the rest random from the seed within c->is.in; in the program's
 * order. */
tarn_tensor **cli_inputs(tarn_ctx *cx, const cli_compile *c, uint32_t n, const tarn_port *ports,
                         const cli_list *given, uint64_t seed);
/* Fills c->is.in. */
void cli_domains(const tarn_program *p, cli_compile *c);
tarn_tensor **cli_outputs(tarn_ctx *cx, const tarn_loaded *m);
uint32_t cli_ports(const tarn_program *p, bool outputs, const tarn_port **ports);
/* For tarn_eval. */
tarn_term *cli_roots(const tarn_program *p);
tarn_binding *cli_bindings(const tarn_program *p, tarn_tensor *const *in);

/* Every shipped rule of both levels, in the order of the files. */
void cli_ship_rules(tarn_ctx *cx, tarn_ruleset *rs);
void cli_derive_rules(tarn_ruleset *rs, const tarn_hw *hw); /* all that follow from it */

int tarn_cmd_compile(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_inspect(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_completion(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_run(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_check(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_bench(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_report(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_kernel(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_explore(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_equal(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_extract(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_hw(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_sim(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_quantize(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_tune(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_worker(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_fleet(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_proof(tarn_ctx *cx, int argc, char **argv);
int tarn_cmd_rules(tarn_ctx *cx, int argc, char **argv);

/* ---- two programs: the one in the path starts fast and has no LLVM (front.c), tarn-full has every
 * command (full.c) ---- */
bool cli_hands_over(char **argv); /* is this for tarn-full? */
int cli_hand_over(char **argv);   /* becomes it; returns an exit status if that fails */

/* ---- Ctrl-C: held back while something runs that asks cli_interrupted() and ends early with what
 * it has found so far. interrupt.c ---- */
bool cli_hold_interrupts(void); /* true: they were not held before; for the next call */
void cli_release_interrupts(bool held);
bool cli_interrupted(void *user);
void cli_forget_interrupt(void);
/* --seconds: the context's limit (base/limit.h) is this many seconds away; 0: there is none. The
 * first call counts. A while after it the process ends without a result, exit status 4. */
void cli_limit(tarn_ctx *cx, double seconds);
/* From here to the end of the protected call Ctrl-C is held back, and the context's limit knows. */
void cli_ends_early(tarn_ctx *cx);
/* ---- a line on the terminal for what takes longer than two seconds. progress.c ---- */
void cli_progress_begin(tarn_ctx *cx); /* what base/progress.h tells is shown, on a terminal */
bool cli_progress_shown(void);
void cli_progress(const tarn_told *s, const char *note); /* note: NULL, or more of it */
void cli_progress_end(void);                             /* the line goes */
void cli_writes(void);        /* there is a result: nothing ends the process while it is written */
void cli_end_now(int status); /* going.c: from a handler; files for now are removed first */
#endif
