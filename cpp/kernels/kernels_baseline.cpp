#define BLOCKGREEDY_TABLE kernels_baseline
#define BLOCKGREEDY_ISA_NAME "baseline"
#include "kernels/kernel_table.hpp"
