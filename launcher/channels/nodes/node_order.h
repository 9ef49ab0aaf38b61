// The first line that node 0 sends on a node's connection. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_NODES_NODE_ORDER_H_
#define HVD_LAUNCHER_CHANNELS_NODES_NODE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// Reserved, so that no connection of a world, of the tree or of a step is mistaken for one of
// these.
inline constexpr uint64_t kNodeGeneration = ~uint64_t{0} - 2;

struct NodeOrder {
  std::optional<std::string> command;  // for a shell; nothing: the job is over
  int code = 0;                        // exit code of the job
};
std::string OrderText(const NodeOrder& order);

// Reads an order from the beginning of a stream.
class OrderReader {
 public:
  static constexpr size_t kMostCommand = 1 << 20;

  // True once the order is complete or invalid.
  bool Add(std::string_view bytes);
  // Nothing: the stream did not begin with an order.
  const std::optional<NodeOrder>& order() const { return order_; }
  // The bytes after the order.
  const std::string& rest() const { return held_; }

 private:
  bool Parse();

  std::string held_;
  std::optional<size_t> wanted_;  // bytes of the command
  std::optional<NodeOrder> order_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_NODE_ORDER_H_
