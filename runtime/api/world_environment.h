// The environment variables from which scripts and other libraries read their rank and the size of
// the world.
#ifndef HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_
#define HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_

#include "runtime/bootstrap/bootstrap.h"

namespace hvd {

// Sets HOROVOD_RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, CROSS_RANK and CROSS_SIZE in an elastic world;
// in other worlds they stay as the launcher set them. Only variables that change are touched. The
// launcher sets all of them at the start, so that setenv does not reallocate the environment while
// another thread reads it.
void RenewEnvironment(const World& world);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_
