// OwnNames: determines which of a source's host names are this machine. Each name is resolved once,
// off the loop, and cached while the source lists it.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_OWN_NAMES_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_OWN_NAMES_H_

#include <asio/io_context.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/elastic_hosts/off_loop.h"

namespace hvd {

// Returns the names that are this machine. Any thread; has its own time limit.
using OwnNamesAmong = std::function<std::set<std::string>(const std::vector<std::string>&)>;

class OwnNames {
 public:
  OwnNames(asio::io_context& io, OwnNamesAmong among) : among_(std::move(among)), off_loop_(io) {}

  // `then` is called from the io_context once Contains() knows exactly these names.
  void Learn(const std::vector<std::string>& names, std::function<void()> then);
  // Cancels the `then` of the last Learn().
  void Forget() { off_loop_.Forget(); }
  bool Contains(const std::string& name) const;

 private:
  OwnNamesAmong among_;
  OffLoop off_loop_;
  std::map<std::string, bool> known_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_OWN_NAMES_H_
