/* Ctrl-C while something runs that can end early: the signal is held back, and the run looks
 * whether it is there. */
#include "cli/cli.h"
#include <signal.h>
#include <time.h>

bool cli_interrupted(void *user) {
  sigset_t waiting;
  (void)user;
  return !sigpending(&waiting) && sigismember(&waiting, SIGINT) == 1;
}
void cli_forget_interrupt(void) {
  sigset_t one;
  struct timespec now = {0};
  sigemptyset(&one), sigaddset(&one, SIGINT);
  while (sigtimedwait(&one, NULL, &now) == SIGINT) continue;
}
bool cli_hold_interrupts(void) {
  sigset_t one, was;
  sigemptyset(&one), sigaddset(&one, SIGINT);
  return !sigprocmask(SIG_BLOCK, &one, &was) && !sigismember(&was, SIGINT);
}
void cli_release_interrupts(bool held) {
  sigset_t one;
  if (!held) return;
  cli_forget_interrupt();
  sigemptyset(&one), sigaddset(&one, SIGINT);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
}
