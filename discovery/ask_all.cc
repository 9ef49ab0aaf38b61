#include "discovery/ask_all.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/mutex.h"

namespace hvd {
namespace {

constexpr size_t kAtOnce = 32;

struct Questions {
  std::function<bool(const std::string&)> ask;
  std::vector<std::string> names;  // each once
  Mutex mutex;
  std::condition_variable answered;
  size_t asked HVD_GUARDED_BY(mutex) = 0, answers HVD_GUARDED_BY(mutex) = 0;
  bool over HVD_GUARDED_BY(mutex) = false;  // the caller no longer waits
  std::set<std::string> yes HVD_GUARDED_BY(mutex);
};

void Work(Questions& questions) {
  MutexLock lock(questions.mutex);
  while (!questions.over && questions.asked < questions.names.size()) {
    const std::string& name = questions.names[questions.asked++];
    lock.unlock();
    bool answer = questions.ask(name);
    lock.lock();
    if (answer) questions.yes.insert(name);
    ++questions.answers;
    questions.answered.notify_all();
  }
}

}  // namespace

std::set<std::string> NamesThat(const std::vector<std::string>& names,
                                std::function<bool(const std::string&)> ask, Duration limit) {
  auto questions = std::make_shared<Questions>();
  questions->ask = std::move(ask);
  std::set<std::string> once(names.begin(), names.end());
  questions->names.assign(once.begin(), once.end());
  for (size_t i = 0; i < std::min(once.size(), kAtOnce); ++i) {
    try {
      std::thread([questions] { Work(*questions); }).detach();
    } catch (const std::system_error&) {  // no thread available
      if (i == 0) Work(*questions);
      break;
    }
  }
  MutexLock lock(questions->mutex);
  questions->answered.wait_for(lock, limit, [&]() HVD_REQUIRES(questions->mutex) {
    return questions->answers == questions->names.size();
  });
  questions->over = true;
  return questions->yes;
}

}  // namespace hvd
