#define BLOCKGREEDY_TABLE kernels_avx512
#define BLOCKGREEDY_ISA_NAME "avx512"
#include "kernels/kernel_table.hpp"
