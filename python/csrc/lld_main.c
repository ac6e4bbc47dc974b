/* The wheel's lib/ld.lld, which base/link.c runs: lld.c. */
int tarn_lld_main(int argc, const char *const *argv);
int main(int argc, char **argv) { return tarn_lld_main(argc, (const char *const *)argv); }
