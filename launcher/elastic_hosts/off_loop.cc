#include "launcher/elastic_hosts/off_loop.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

// `done` publishes what the question wrote: the bell alone gives the other thread no such
// guarantee.
struct Asked {
  std::function<void()> question;
  UniqueFd bell;
  std::atomic<bool> done = false;
};

void Answer(Asked& asked) {
  asked.question();
  asked.done.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(asked.bell.get(), &one, sizeof one);
}

}  // namespace

void OffLoop::Ask(std::function<void()> question, std::function<void()> then) {
  Forget();
  then_ = std::make_shared<std::function<void()>>(std::move(then));
  const auto asked = std::make_shared<Asked>();
  asked->question = std::move(question);
  asked->bell.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  auto call = [this, asked, weak = std::weak_ptr(then_)](const asio::error_code&) {
    const auto called = weak.lock();
    if (!called) return;  // forgotten
    [[maybe_unused]] const bool done = asked->done.load(std::memory_order_acquire);
    then_.reset();
    answered_.close();
    (*called)();
  };
  UniqueFd heard(asked->bell.valid() ? ::fcntl(asked->bell.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!heard.valid()) {  // out of descriptors
    Answer(*asked);
    asio::post(answered_.get_executor(), [call] { call({}); });
    return;
  }
  answered_.assign(heard.Release());
  answered_.async_wait(asio::posix::stream_descriptor::wait_read, call);
  try {
    std::thread([asked] { Answer(*asked); }).detach();
  } catch (const std::system_error&) {  // no thread available
    Answer(*asked);
  }
}

void OffLoop::Forget() {
  then_.reset();
  if (answered_.is_open()) answered_.close();
}

}  // namespace hvd
