#include "runtime/base/status.h"

#include <cerrno>
#include <system_error>

namespace hvd {

const std::string& Status::message() const {
  static const auto* const none = new std::string;  // outlives every thread that asks
  return ok() ? *none : failure_->message;
}

Status SystemError(std::string_view what, int error) {
  Code code = error == ENOMEM || error == ENOSPC ? Code::kOutOfMemory : Code::kInternal;
  const char* limit = error == EMFILE ? " (ulimit -n)" : "";
  return {code, std::string(what) + ": " + std::generic_category().message(error) + limit};
}

}  // namespace hvd
