#define BLOCKGREEDY_TABLE kernels_avx2
#define BLOCKGREEDY_ISA_NAME "avx2"
#include "kernels/kernel_table.hpp"
