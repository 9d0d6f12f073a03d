#define BLOCKGREEDY_TABLE kernels_avx512
#define BLOCKGREEDY_ISA_NAME "avx512"
#include "blockgreedy/kernels_impl.hpp"
