// HVD_SOURCE_FOLDER is the root of the tree.
#include "runtime/device/cuda/nvrtc/kernels_source.h"

// Embeds a file as a null-terminated string under its own symbol.
#define HVD_EMBED(symbol, file)               \
  asm(".section .rodata\n"                    \
      ".hidden " #symbol                      \
      "\n"                                    \
      ".global " #symbol "\n" #symbol         \
      ":\n"                                   \
      ".incbin \"" HVD_SOURCE_FOLDER "/" file \
      "\"\n"                                  \
      ".byte 0\n"                             \
      ".previous\n");                         \
  extern "C" const char symbol[]  // NOLINT(readability-identifier-naming)

HVD_EMBED(hvd_text_of_kernels, "runtime/device/cuda/kernels.cu");
HVD_EMBED(hvd_text_of_adasum_kernel, "runtime/device/cuda/adasum_kernel.h");
HVD_EMBED(hvd_text_of_batch_kernel, "runtime/device/cuda/batch_kernel.h");
HVD_EMBED(hvd_text_of_kernel_elements, "runtime/device/cuda/kernel_elements.h");
HVD_EMBED(hvd_text_of_adasum_tree, "runtime/device/adasum_tree.h");

namespace hvd {

KernelsSource SourceOfKernels() {
  return {"kernels.cu",
          hvd_text_of_kernels,
          {{"runtime/device/cuda/adasum_kernel.h", hvd_text_of_adasum_kernel},
           {"runtime/device/cuda/batch_kernel.h", hvd_text_of_batch_kernel},
           {"runtime/device/cuda/kernel_elements.h", hvd_text_of_kernel_elements},
           {"runtime/device/adasum_tree.h", hvd_text_of_adasum_tree}}};
}

}  // namespace hvd
