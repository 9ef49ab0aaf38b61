#include "launcher/elastic_hosts/first_answer.h"

#include <optional>

namespace hvd {

HostAnswer FirstAnswer(asio::io_context& io, HostWatch& watch) {
  std::optional<HostAnswer> first;
  io.restart();  // it may have run out of work before
  watch.Start([&](const HostAnswer& answer) {
    if (!first) first = answer;
  });
  while (!first && io.run_one() > 0) continue;
  watch.Stop();
  return first.value_or(HostAnswer{{}, "the source of hosts gave no answer"});
}

}  // namespace hvd
