// Event names, compatible with tools for Horovod's timeline.
#ifndef HVD_RUNTIME_TRACE_EVENT_NAMES_H_
#define HVD_RUNTIME_TRACE_EVENT_NAMES_H_

#include <cstdint>
#include <string_view>

namespace hvd {

// "ALLREDUCE" for hvd_collective 0, and so on; "OPERATION" for an unknown number.
std::string_view CollectiveName(uint8_t collective);
// Whether the operation transfers data, so that its row has an event of its name.
bool MovesData(uint8_t collective);

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_EVENT_NAMES_H_
