// StockStore: the values that workers of stock Horovod leave for each other, by scope and key.
// Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_STORE_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hvd {

// Beyond these nothing more is taken. A value of a rank has some hundred bytes for each other rank.
inline constexpr size_t kMostStockValue = size_t{1} << 20;
inline constexpr size_t kMostStockBytes = size_t{512} << 20;
// For each pair of ranks, beside so much for all.
inline constexpr size_t kStockBytesOfPair = 2048;
inline constexpr size_t kFewestStockBytes = size_t{16} << 20;

class StockStore {
 public:
  // By scope: how many ranks meet in it.
  using Sizes = std::map<std::string, uint32_t, std::less<>>;

  // A world begins, and all that was there is forgotten.
  void Begin(Sizes sizes);

  // False: there is no room.
  bool Put(std::string_view scope, std::string_view key, std::string_view value);
  // Null: there is none. Valid until the next change.
  const std::string* Find(std::string_view scope, std::string_view key) const;
  // In a scope of Begin: a rank has found all the others, and when each rank of the scope has said
  // so, the scope is empty again. In another scope: the key goes at once.
  void Delete(std::string_view scope, std::string_view key);

  size_t bytes() const { return bytes_; }
  // The most that is taken for the world that began last: a stranger may fill it.
  size_t most_bytes() const { return most_bytes_; }

 private:
  struct Scope {
    std::map<std::string, std::string, std::less<>> values;
    std::set<std::string, std::less<>> finished;  // keys, of a scope of Begin
  };
  using Scopes = std::map<std::string, Scope, std::less<>>;
  void Forget(Scopes::iterator scope);

  Sizes sizes_;
  Scopes scopes_;
  size_t bytes_ = 0, most_bytes_ = kFewestStockBytes;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_STORE_H_
