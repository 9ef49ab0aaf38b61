/* The request ring: each reader sees every record, once, in order and whole, though records never wrap around the end and
 * the writer never waits for more room than it needs. See "The request ring" in SEGMENT.md.
 *
 * A ring of 8 units, records of 1 or 2 units with their frames, two readers of any speed. */
#define RING 8
#define READERS 2
#define RECORDS 5
#define SKIP 9

byte stamp[RING];           /* position + 1 in the commit word of the frame that begins here; 0: none */
byte length[RING];          /* of the record behind the frame, or SKIP */
byte content[RING];         /* number of the record that this unit belongs to */
byte consumed[READERS];
byte using[READERS];        /* units that a reader looks at: first position + 1, 0: none */
byte using_units[READERS];

inline overwrite(position, number) {
  /* No reader may be looking at what is overwritten. */
  assert(using[0] == 0 || (position) % RING < (using[0] - 1) % RING ||
         (position) % RING >= (using[0] - 1) % RING + using_units[0]);
  assert(using[1] == 0 || (position) % RING < (using[1] - 1) % RING ||
         (position) % RING >= (using[1] - 1) % RING + using_units[1]);
  content[(position) % RING] = number;
}

#define HAS_ROOM(units) (tail + (units) <= consumed[0] + RING && tail + (units) <= consumed[1] + RING)

active proctype Writer() {
  byte tail = 0, number = 1, units, to_end, k;
  do
  :: number > RECORDS -> break
  :: number <= RECORDS ->
    units = 2 + (number % 2);                            /* frame and record */
    to_end = RING - tail % RING;
    if
    :: units > to_end ->
      HAS_ROOM(to_end + units);
      overwrite(tail, 0);
      d_step { length[tail % RING] = SKIP; stamp[tail % RING] = tail + 1 };
      tail = tail + to_end
    :: else -> HAS_ROOM(units)
    fi;
    k = 0;
    do
    :: k == units -> break
    :: k < units -> overwrite(tail + k, number); k++
    od;
    length[tail % RING] = units;
    stamp[tail % RING] = tail + 1;                       /* release: what is above is seen first */
    tail = tail + units;
    number++
  od
}

active [READERS] proctype Reader() {
  byte me = _pid - 1, head = 0, expected = 1, units, k;
  do
  :: expected > RECORDS -> break
  :: expected <= RECORDS ->
    stamp[head % RING] == head + 1;                      /* Peek */
    units = length[head % RING];
    if
    :: units == SKIP ->
      head = head + RING - head % RING;
      consumed[me] = head
    :: else ->
      d_step { using[me] = head + 1; using_units[me] = units };
      k = 0;
      do
      :: k == units -> break
      :: k < units -> assert(content[(head + k) % RING] == expected); k++
      od;
      using[me] = 0;
      head = head + units;
      consumed[me] = head;                               /* Consume */
      expected++
    fi
  od
}
