// OwnNames: which of the names that a source gives are this machine. Each name is asked for once,
// off the loop, and its answer is kept as long as the source gives the name.
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

// Those of the names that are this machine. Any thread; ends within a limit of its own.
using OwnNamesAmong = std::function<std::set<std::string>(const std::vector<std::string>&)>;

class OwnNames {
 public:
  OwnNames(asio::io_context& io, OwnNamesAmong among) : among_(std::move(among)), off_loop_(io) {}

  // `then` is called by the io_context once Contains() knows these names and no others.
  void Learn(const std::vector<std::string>& names, std::function<void()> then);
  // The `then` of the last Learn() is not called any more.
  void Forget() { off_loop_.Forget(); }
  bool Contains(const std::string& name) const;

 private:
  OwnNamesAmong among_;
  OffLoop off_loop_;
  std::map<std::string, bool> known_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_OWN_NAMES_H_
