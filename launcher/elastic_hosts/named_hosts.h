// NamedHosts: converts a source's host names to hosts of the job, without blocking the loop.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "launcher/elastic_hosts/off_loop.h"

namespace hvd {

// OwnNames: determines which of a source's host names are this machine. Each name is resolved once,
// off the loop, and cached while the source lists it.
// One thread, that of the io_context.

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

// What all host sources need from the rest of hvdrun.
struct WatchParts {
  OwnNamesAmong own_names;
  // Slots of a host named without a number; 0: its agent reports them.
  std::function<uint32_t(bool remote)> default_slots;
  // Logs a sentence. Called from the io_context.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

class NamedHosts {
 public:
  NamedHosts(asio::io_context& io, const WatchParts& parts)
      : default_slots_(parts.default_slots), own_names_(io, parts.own_names) {}

  // `then` is called from the io_context, unless Forget() is called first.
  void Resolve(std::vector<HostSpec> specs, std::function<void(std::vector<HostSlots>)> then);
  void Forget() { own_names_.Forget(); }

 private:
  std::function<uint32_t(bool remote)> default_slots_;
  OwnNames own_names_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_NAMED_HOSTS_H_
