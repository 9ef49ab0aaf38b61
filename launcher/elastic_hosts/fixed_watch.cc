#include "launcher/elastic_hosts/fixed_watch.h"

#include <utility>

namespace hvd {

void FixedWatch::Start(std::function<void(const HostAnswer&)> on_answer) {
  named_.Resolve(specs_, [on_answer = std::move(on_answer)](std::vector<HostSlots> hosts) {
    on_answer({std::move(hosts), ""});
  });
}

}  // namespace hvd
