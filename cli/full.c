/* tarn-full has every command: there is nothing to hand over. */
#include "cli/cli.h"

bool cli_hands_over(char **argv) { return (void)argv, false; }
int cli_hand_over(char **argv) { return (void)argv, TARN_INTERNAL; }
