#include "launcher/channels/ssh/name_lookup.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr int kMostThreads = 16;

struct Question {
  uint64_t number = 0;
  std::string name;
  uint16_t port = 0;
  int family = AF_UNSPEC;
};

std::string TextOf(const addrinfo& info, uint16_t port) {
  char host[NI_MAXHOST] = {};
  ::getnameinfo(info.ai_addr, info.ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return Format("{} port {}", host, port);
}

LookupResult Ask(const Question& question) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = question.family;
  hints.ai_socktype = SOCK_STREAM;
  int error =
      ::getaddrinfo(question.name.c_str(), std::to_string(question.port).c_str(), &hints, &found);
  LookupResult result;
  if (error != 0) {
    result.may_pass = error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA ||
                      error == EAI_FAIL || error == EAI_SYSTEM;
    result.reason = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
    return result;
  }
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    FoundAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    address.text = TextOf(*each, question.port);
    result.addresses.push_back(std::move(address));
  }
  ::freeaddrinfo(found);
  return result;
}

}  // namespace

// State shared with the threads, which outlives this object.
struct NameLookup::Shared {
  Mutex mutex;
  std::deque<Question> questions HVD_GUARDED_BY(mutex);
  std::vector<std::pair<uint64_t, LookupResult>> answers HVD_GUARDED_BY(mutex);
  int threads HVD_GUARDED_BY(mutex) = 0;
  UniqueFd bell;  // an eventfd

  static void Work(const std::shared_ptr<Shared>& shared) {
    MutexLock lock(shared->mutex);
    while (!shared->questions.empty()) {
      Question question = std::move(shared->questions.front());
      shared->questions.pop_front();
      lock.unlock();
      LookupResult result = Ask(question);
      lock.lock();
      shared->answers.emplace_back(question.number, std::move(result));
      uint64_t one = 1;
      [[maybe_unused]] ssize_t rung = ::write(shared->bell.get(), &one, sizeof one);
    }
    --shared->threads;
  }
};

NameLookup::NameLookup(asio::io_context& io) : shared_(std::make_shared<Shared>()), bell_(io) {
  shared_->bell.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bell_.assign(::fcntl(shared_->bell.get(), F_DUPFD_CLOEXEC, 0));
}

void NameLookup::Find(const std::string& name, uint16_t port, int family, Done done) {
  uint64_t number = next_++;
  open_[number] = std::move(done);
  {
    MutexLock lock(shared_->mutex);
    shared_->questions.push_back({number, name, port, family});
    if (shared_->threads < kMostThreads) {
      ++shared_->threads;
      std::thread([shared = shared_] { Shared::Work(shared); }).detach();
    }
  }
  Wait();
}

void NameLookup::Wait() {
  if (waiting_ || open_.empty()) return;
  waiting_ = true;
  bell_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [this](const asio::error_code& error) {
                     if (error) return;
                     waiting_ = false;
                     Collect();
                     Wait();
                   });
}

void NameLookup::Collect() {
  uint64_t count = 0;
  [[maybe_unused]] ssize_t got = ::read(shared_->bell.get(), &count, sizeof count);
  std::vector<std::pair<uint64_t, LookupResult>> answers;
  {
    MutexLock lock(shared_->mutex);
    answers.swap(shared_->answers);
  }
  for (auto& [number, result] : answers) {
    auto entry = open_.extract(number);
    if (!entry.empty()) entry.mapped()(std::move(result));
  }
}

}  // namespace hvd
