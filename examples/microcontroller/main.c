/* The digits on a Cortex-M4 without an operating system or a C library: start code, ten images in
 * flash, the network, and what it takes them for. Text goes out by semihosting, which an emulator
 * or a debugger answers. See run.sh. */
#include "images.h"
#include "model.h"
#include <stdint.h>

enum { PIXELS = DIGITS_IN0_BYTES / sizeof(float), DIGITS = DIGITS_OUT0_BYTES / sizeof(float) };

/* ---- the machine ---- */
#define REGISTER(address) (*(volatile uint32_t *)(address))
static void semihosting(uint32_t what, const void *arg) {
  register uint32_t r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = arg;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void say(const char *text) { semihosting(4 /* SYS_WRITE0 */, text); }
_Noreturn static void finish(uint32_t code) {
  const uint32_t how[] = {0x20026 /* the application ends */, code};
  for (;;) semihosting(0x20 /* SYS_EXIT_EXTENDED */, how);
}
static void say_number(uint32_t n) {
  char text[11], *p = text + sizeof text;
  *--p = 0;
  do *--p = (char)('0' + n % 10);
  while (n /= 10);
  say(p);
}
/* Counts down from 2^24 at 25 MHz. */
static void start_clock(void) {
  REGISTER(0xe000e014) = 0xffffff;
  REGISTER(0xe000e018) = 0;
  REGISTER(0xe000e010) = 5;
}
static uint32_t ticks(void) { return 0xffffff - REGISTER(0xe000e018); }

/* ---- the network ---- */
static _Alignas(64) char workspace[DIGITS_WORKSPACE + DIGITS_WORKSPACE_PER_THREAD];
static float image[PIXELS], probability[DIGITS];

static uint32_t classify(const uint8_t *pixel) {
  uint32_t best = 0;
  for (int i = 0; i < PIXELS; i++) image[i] = (float)pixel[i] / 255;
  if (digits_run((const void *const[]){image}, (void *const[]){probability}, workspace, 0))
    finish(3);
  for (uint32_t i = 1; i < DIGITS; i++)
    if (probability[i] > probability[best]) best = i;
  return best;
}
static void run(void) {
  uint32_t wrong = 0, begin;
  start_clock();
  begin = ticks();
  for (uint32_t k = 0; k < sizeof images / sizeof *images; k++) {
    uint32_t is = classify(images[k]);
    wrong += is != k;
    say_number(is);
    say(" ");
  }
  say("\n");
  say_number(((ticks() - begin) & 0xffffff) / (sizeof images / sizeof *images));
  say(" ticks an image\n");
  finish(wrong != 0);
}

/* ---- start: where the processor begins, and what it has then ---- */
extern uint32_t data_begin[], data_end[], data_in_flash[], bss_begin[], bss_end[], stack_top[];
_Noreturn void start(void) {
  for (uint32_t *to = data_begin, *from = data_in_flash; to < data_end;) *to++ = *from++;
  for (uint32_t *to = bss_begin; to < bss_end;) *to++ = 0;
  REGISTER(0xe000ed88) |= 0xfu << 20; /* the unit for floats is on */
  __asm__ volatile("dsb\nisb");
  run();
  finish(0);
}
static _Noreturn void fault(void) { finish(2); }
__attribute__((used, section(".vectors"))) static void *const vectors[16] = {
    stack_top,     (void *)start, (void *)fault, (void *)fault,
    (void *)fault, (void *)fault, (void *)fault};
