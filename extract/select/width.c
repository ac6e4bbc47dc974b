#include "extract/select/solve.h"
bool sel_part_width(sel_run *r, sel_pool *mem, sel_part *t) { (void)r, (void)mem, (void)t; return false; }
