// HVD_KERNELS_FILE is the path of the fat binary.
#include "runtime/device/cuda/kernels_image.h"

asm(".section .rodata\n"
    ".balign 64\n"
    ".hidden hvd_kernels_image\n"
    ".global hvd_kernels_image\n"
    "hvd_kernels_image:\n"
    ".incbin \"" HVD_KERNELS_FILE
    "\"\n"
    ".previous\n");
