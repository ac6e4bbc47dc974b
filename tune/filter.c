/* What a process that measures may still ask of the kernel: memory, time, threads, what is open
 * already. See child.h. The filter is libseccomp's: a call that is not in the list ends the
 * process, whichever of its threads makes it. */
#include "tune/child.h"
#include <errno.h>
#include <seccomp.h>
#include <string.h>

static const char *const allowed[] = {
    "read",
    "write",
    "close",
    "lseek",
    "fstat",
    "mmap",
    "mremap",
    "munmap",
    "mprotect",
    "madvise",
    "brk",
    "futex",
    "clone",
    "clone3",
    "set_robust_list",
    "rseq",
    "sched_yield",
    "sched_getaffinity",
    "sched_setaffinity",
    "getcpu",
    "clock_gettime",
    "clock_nanosleep",
    "nanosleep",
    "gettimeofday",
    "getpid",
    "gettid",
    "getrandom",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "restart_syscall",
    "exit",
    "exit_group",
    "membarrier",
    "set_tid_address",
    "getrusage",
    "prlimit64",
    "set_mempolicy",
    "get_mempolicy",
    "sysinfo",
};

void tarn_child_close(tarn_ctx *cx) {
  scmp_filter_ctx f = seccomp_init(SCMP_ACT_KILL_PROCESS);
  int bad = f ? 0 : -ENOMEM;
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !bad; i++) {
    int call = seccomp_syscall_resolve_name(allowed[i]);
    if (call != __NR_SCMP_ERROR) bad = seccomp_rule_add(f, SCMP_ACT_ALLOW, call, 0);
  }
  if (!bad) bad = seccomp_load(f);
  if (f) seccomp_release(f);
  if (bad) tarn_raise(cx, TARN_IO, "measuring: no filter of system calls: %s", strerror(-bad));
}
