// HostWatch: polls the source of an elastic job's hosts. Never blocks the loop. Does not judge
// hosts: a failed one stays in the list.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "discovery/host_slots.h"

namespace hvd {

struct HostAnswer {
  // In the source's order, without duplicates; may be empty. On errors: the last valid list.
  std::vector<HostSlots> hosts;
  std::string trouble;    // one sentence on the source's current error; empty: none
  bool hopeless = false;  // permanent: retrying cannot help, for instance without such a program

  bool operator==(const HostAnswer&) const = default;
};

class HostWatch {
 public:
  virtual ~HostWatch() = default;
  // Call once. `on_answer` is called from the io_context, never from inside a call of this class:
  // with the first answer, and then when the hosts change, when an error of another kind occurs,
  // and when it has been resolved.
  virtual void Start(std::function<void(const HostAnswer&)> on_answer) = 0;
  // Ends all answers and everything that the watch started. May be called at any time, also from
  // on_answer; the destructor calls it.
  virtual void Stop() = 0;
};

// Creates a watch, which must be destroyed before the io_context.
using HostWatchMaker = std::function<std::unique_ptr<HostWatch>(asio::io_context&)>;

// AnswerHistory: filters a host source's answers for changes. Pure.

// An error of the source. Successive errors of one kind are reported once, even if their sentences
// differ (for instance by a time).
struct SourceTrouble {
  std::string kind;
  std::string sentence;
  bool hopeless = false;  // as in HostAnswer
};

class AnswerHistory {
 public:
  // The answer to pass to on_answer; nothing if unchanged.
  std::optional<HostAnswer> Good(std::vector<HostSlots> hosts);
  std::optional<HostAnswer> Bad(const SourceTrouble& trouble);

 private:
  bool answered_ = false;  // there was a valid answer
  std::vector<HostSlots> hosts_;
  std::string trouble_kind_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_HOST_WATCH_H_
