#define BLOCKGREEDY_TABLE kernels_avx2
#define BLOCKGREEDY_ISA_NAME "avx2"
#include "blockgreedy/kernels_impl.hpp"
