// The message of an exception that ends hvdrun or an agent, as a part of a sentence.
#ifndef HVD_LAUNCHER_PROCESS_UNCAUGHT_H_
#define HVD_LAUNCHER_PROCESS_UNCAUGHT_H_

#include <exception>
#include <string>

namespace hvd {

// Its what() text, with facts that this lacks. Pure.
std::string MeaningOf(const std::exception& failure);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_UNCAUGHT_H_
