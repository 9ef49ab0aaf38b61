// The first answer of a source of hosts, for programs that start with it.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_

#include <asio/io_context.hpp>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {

// Waits for it, as long as the source takes (all have limits of their own), and stops the watch.
// `io` is that of the watch and does nothing else meanwhile.
HostAnswer FirstAnswer(asio::io_context& io, HostWatch& watch);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_FIRST_ANSWER_H_
