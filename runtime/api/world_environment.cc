#include "runtime/api/world_environment.h"

#include <stdlib.h>

#include <string>

#include "runtime/base/env.h"

namespace hvd {

void RenewEnvironment(const World& world) {
  if (!world.ranks_change) return;
  const struct {
    const char* name;
    uint32_t value;
  } variables[] = {
      {"HOROVOD_RANK", world.rank},
      {"HOROVOD_SIZE", world.size},
      {"HOROVOD_LOCAL_RANK", world.local_rank},
      {"HOROVOD_LOCAL_SIZE", world.local_size},
      {"HOROVOD_CROSS_RANK", world.cross_rank},
      {"HOROVOD_CROSS_SIZE", world.cross_size},
  };
  for (const auto& variable : variables) {
    const std::string value = std::to_string(variable.value);
    if (GetEnv(variable.name) != value) (void)::setenv(variable.name, value.c_str(), 1);
  }
}

}  // namespace hvd
