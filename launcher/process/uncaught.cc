#include "launcher/process/uncaught.h"

#include <cerrno>
#include <system_error>

namespace hvd {

// std::thread throws the generic category, Asio its own. A thread that cannot be started for lack
// of resources fails with EAGAIN; any other error comes from a seccomp filter.
std::string MeaningOf(const std::exception& failure) {
  std::string what = failure.what();
  const auto* error = dynamic_cast<const std::system_error*>(&failure);
  const bool from_thread = error != nullptr && error->code().category() == std::generic_category();
  if (!from_thread) return what;
  if (error->code().value() == EAGAIN)
    return "no thread could be made: " + what + "; look at the limits of processes (ulimit -u)";
  return "no thread could be made: " + what +
         "; does a seccomp filter refuse clone3? One that answers ENOSYS does no harm, as newer "
         "container runtimes' do";
}

}  // namespace hvd
