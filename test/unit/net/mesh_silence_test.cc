#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/net/mesh/mesh_signs.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Case {
  const char* what;
  std::vector<ConnectionSigns> connections;
  Duration silence;
};

TEST(MeshSilence, IsThatOfTheWholePairAndOnlyWhereItWasAsked) {
  const Case cases[] = {
      {"no connection yet", {}, seconds(0)},
      {"both were heard just now", {{milliseconds(2), 0}, {milliseconds(700), 0}}, seconds(0)},
      {"both are silent and were asked", {{seconds(5), 5}, {seconds(4), 3}}, seconds(4)},
      {"one is silent, and the other is heard",
       {{seconds(20), 6}, {milliseconds(900), 0}},
       milliseconds(900)},
      {"a stopped process shuts its window and its kernel answers each probe",
       {{seconds(40), 0}, {milliseconds(800), 0}},
       seconds(0)},
      {"the only connection waits long for the next window probe", {{seconds(25), 1}}, seconds(0)},
      {"an acknowledgement and the first two questions were lost", {{seconds(3), 2}}, seconds(0)},
      {"the only connection has sent again three times", {{seconds(3), 3}}, seconds(3)},
      {"one shut window, one unanswered connection",
       {{seconds(9), 0}, {seconds(6), 5}},
       seconds(6)},
  };
  for (const Case& c : cases) EXPECT_EQ(SilenceOf(c.connections), c.silence) << c.what;
}

TEST(MeshSilence, NothingIsKnownOfWhatIsNoConnection) {
  EXPECT_EQ(SignsOf(-1).quiet, Duration::zero());
  EXPECT_EQ(SignsOf(-1).unanswered, 0u);
}

}  // namespace
}  // namespace hvd
