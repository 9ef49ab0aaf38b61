#include "launcher/driver/driver_parts.h"

#include <utility>

#include "launcher/driver/job_settings.h"
#include "launcher/jobs/job_id.h"

namespace hvd {

DriverParts::DriverParts(DriverOptions the_options, TimePoint now)
    : options(std::move(the_options)),
      begun(now),
      state(options.plan, JobOptionsOf(options), options.named_hosts),
      tree([this](uint32_t host, const ToAgent& message) { agents.Send(host, message); }),
      connectivity(options, tree),
      kv_service(tree),
      relay([this](uint32_t number, const ToAgent& message) {
        agents.Send(tree.hosts()[number], message);
      }),
      troubles(RouteSilenceLimit(options.settings)),
      stalls([this](uint32_t host, const ExamineRanks& question) { agents.Send(host, question); }),
      clock_questions(options.plan.hosts.size()),
      free_ports(options.plan.hosts.size()),
      facts(options.plan.hosts.size()),
      screen(io, options.plan, options.most_ranks(), options.settings, options.prefix,
             [this](uint32_t host, uint64_t bytes) { agents[host].ReturnCredit(bytes); }),
      log(LogLevelOf(options.settings), options.plan, screen) {
  if (elastic()) state.elastic.emplace(options.elastic, ParseJobId(options.job_id).value_or(0));
}

void DriverParts::AddHost(const HostSlots& listing) {
  // The state may know of more hosts that are about to be added.
  options.plan.hosts.push_back(state.plan.hosts[options.plan.hosts.size()]);
  options.named_hosts.push_back(listing);
  options.hosts.push_back({listing.remote, {}});
  clock_questions.AddHost();
  free_ports.push_back(0);
  facts.emplace_back();
}

}  // namespace hvd
