#include "launcher/elastic_hosts/host_watch.h"

#include <utility>

namespace hvd {

std::optional<HostAnswer> AnswerHistory::Good(std::vector<HostSlots> hosts) {
  const bool known = answered_ && trouble_kind_.empty() && hosts == hosts_;
  answered_ = true;
  trouble_kind_.clear();
  hosts_ = std::move(hosts);
  return known ? std::nullopt : std::optional(HostAnswer{hosts_, ""});
}

std::optional<HostAnswer> AnswerHistory::Bad(const SourceTrouble& trouble) {
  if (trouble.kind == trouble_kind_) return std::nullopt;
  trouble_kind_ = trouble.kind;
  return HostAnswer{hosts_, trouble.sentence, trouble.hopeless};
}

}  // namespace hvd
