#include "launcher/hosts/off_loop.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

void Answer(const std::function<void()>& question, const UniqueFd& bell) {
  question();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(bell.get(), &one, sizeof one);
}

}  // namespace

void OffLoop::Ask(std::function<void()> question, std::function<void()> then) {
  Forget();
  then_ = std::make_shared<std::function<void()>>(std::move(then));
  std::weak_ptr<std::function<void()>> weak = then_;
  auto call = [this, weak](const asio::error_code&) {
    const auto called = weak.lock();
    if (!called) return;  // forgotten
    then_.reset();
    answered_.close();
    (*called)();
  };
  UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd heard(bell.valid() ? ::fcntl(bell.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!heard.valid()) {  // out of descriptors
    question();
    asio::post(answered_.get_executor(), [call] { call({}); });
    return;
  }
  answered_.assign(heard.Release());
  answered_.async_wait(asio::posix::stream_descriptor::wait_read, call);
  const auto shared = std::make_shared<UniqueFd>(std::move(bell));
  try {
    std::thread([question, shared] { Answer(question, *shared); }).detach();
  } catch (const std::system_error&) {  // out of threads
    Answer(question, *shared);
  }
}

void OffLoop::Forget() {
  then_.reset();
  if (answered_.is_open()) answered_.close();
}

}  // namespace hvd
