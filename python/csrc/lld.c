/* lld within the wheel's libtarn-codegen, which links LLVM and lld statically; the program
 * lib/ld.lld of the wheel is its main. lld has no interface in C: lld::elf::link() of
 * lld/Common/Driver.h is called by its name in the object file, and an llvm::ArrayRef is passed as
 * the two words that it is (Itanium C++ ABI, 3.1.1: a trivially copyable class goes as its fields
 * do). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LLVM registers Polly, which is no archive of Debian's, where it optimises bitcode that is linked:
 * never here. Source: llvm/Passes/PassPlugin.h, PassPluginLibraryInfo. */
typedef struct extension {
  uint32_t version;
  const char *name, *of;
  void (*add)(void *builder);
} extension;
static void add_nothing(void *builder) { (void)builder; }
extension polly(void) __asm__("_Z18getPollyPluginInfov");
extension polly(void) { return (extension){1, "Polly", "", add_nothing}; }

typedef struct words {
  const char *const *p;
  size_t n;
} words;
bool elf_link(words argv, void *out, void *err, bool exit_early, bool disable_output) __asm__(
    "_ZN3lld3elf4linkEN4llvm8ArrayRefIPKcEERNS1_11raw_ostreamES7_bb");
void *standard_output(void) __asm__("_ZN4llvm4outsEv");
void *standard_error(void) __asm__("_ZN4llvm4errsEv");

__attribute__((visibility("default"))) int tarn_lld_main(int argc, const char *const *argv) {
  words all = {argv, (size_t)argc};
  return !elf_link(all, standard_output(), standard_error(), true, false);
}
