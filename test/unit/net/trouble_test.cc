#include "runtime/net/trouble.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

TEST(Trouble, SurvivesTheDirectory) {
  for (const Trouble& trouble :
       {Trouble(RankSilent{3, 99'999, 4000}), Trouble(RankSilent{3, 1, 0}),
        Trouble(RankEnding{7, "out of memory"}),
        Trouble(RankEnding{7, "rank 7 has waited 5 s", true}), Trouble(RankStopped{0})}) {
    const TroubleEntry entry = EncodeTrouble(trouble, 12);
    EXPECT_TRUE(CheckKvKey(entry.key).ok()) << entry.key;
    EXPECT_EQ(DecodeTrouble(entry.key, entry.value), trouble) << entry.key;
  }
  EXPECT_NE(EncodeTrouble(RankSilent{1, 2, 3000}, 0).key, EncodeTrouble(RankSilent{1, 2, 0}, 1).key)
      << "a key is put once";
  const TroubleEntry large = EncodeTrouble(RankEnding{1, std::string(100'000, 'x')});
  EXPECT_EQ(large.value.size(), kMaxKvValue);
}

TEST(Trouble, IsNothingElse) {
  for (auto [key, value] : {std::pair("mesh.3", "x"),
                            {"trouble.silent.1.2", "3"},
                            {"trouble.silent.1.2.3.4", "3"},
                            {"trouble.silent.1.2.3", ""},
                            {"trouble.silent.1.2.3", "-3"},
                            {"trouble.silent.-1.2.3", "3"},
                            {"trouble.silent.1.2.99999999999", "3"},
                            {"trouble.ending.", "x"},
                            {"trouble.ending.1", ""},
                            {"trouble.ending.1x", "x"},
                            {"trouble.stalled.1", ""},
                            {"trouble.stopped.1", "x"},
                            {"trouble.stopped.", ""}}) {
    EXPECT_FALSE(DecodeTrouble(key, value)) << key << " " << value;
  }
}

}  // namespace
}  // namespace hvd
