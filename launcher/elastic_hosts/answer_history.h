// AnswerHistory: the news about a source of hosts after each of its answers. Pure.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_

#include <optional>
#include <string>
#include <vector>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

// Why an answer was not good. Two troubles of one kind are the same one, though their sentences may
// differ (a line of a log has the time in it): only the first is said.
struct SourceTrouble {
  std::string kind;
  std::string sentence;
  bool hopeless = false;  // as in HostAnswer
};

class AnswerHistory {
 public:
  // The answer that on_answer is to be told; nothing if it knows already.
  std::optional<HostAnswer> Good(std::vector<HostSlots> hosts);
  std::optional<HostAnswer> Bad(const SourceTrouble& trouble);

 private:
  bool answered_ = false;  // there was a good answer
  std::vector<HostSlots> hosts_;
  std::string trouble_kind_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_ANSWER_HISTORY_H_
