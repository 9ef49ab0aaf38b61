// Blocks for the first answer of a host source.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_

#include <asio/io_context.hpp>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

// Waits as long as the source takes (all have their own limits), then stops the watch. `io` is the
// watch's and runs nothing else meanwhile.
HostAnswer FirstAnswer(asio::io_context& io, HostWatch& watch);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_
