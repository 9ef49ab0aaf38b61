// AnswerHistory: filters a host source's answers for changes. Pure.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_

#include <optional>
#include <string>
#include <vector>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

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

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_
