// The smallest job of the runtime: join, meet once, leave.
#include <cstdio>

#include "hvd/hvd.h"

int main() {
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = HVD_BARRIER;
  request.name = "init";
  if (hvd_init(nullptr) == HVD_OK && hvd_run(&request) == HVD_OK && hvd_shutdown() == HVD_OK)
    return 0;
  std::fprintf(stderr, "init_hvd: %s\n", hvd_last_error());
  return 1;
}
