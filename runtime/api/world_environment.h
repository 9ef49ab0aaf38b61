// The variables by which scripts and other libraries read their place in the world.
#ifndef HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_
#define HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_

#include "runtime/bootstrap/bootstrap.h"

namespace hvd {

// Sets HOROVOD_RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, CROSS_RANK and CROSS_SIZE to those of an elastic
// world; the variables of other worlds stay as their launcher set them. Only variables that change
// are touched. The launcher has set all of them at the start, so that no
// setenv moves the environment under a thread that reads it.
void RenewEnvironment(const World& world);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_WORLD_ENVIRONMENT_H_
