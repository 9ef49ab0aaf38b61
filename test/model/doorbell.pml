/* Ring and doorbell: nobody sleeps for ever beside a record that was sent to it. See Doorbell in SEGMENT.md.
 *
 * Two threads of the reading rank, one writing rank. A plain store lies in the store buffer of its processor until the
 * processor writes it out, whenever it likes, or fences: that is what makes the two fences necessary (leave out either and
 * the checker finds the sleeper). The futex has no timeout here, so a lost wake-up is an invalid end state. */
#ifndef WRITER_FENCE
#define WRITER_FENCE 1
#endif
#ifndef READER_FENCE
#define READER_FENCE 1
#endif
#define RECORDS 2
#define READERS 2

byte published, word, sleeping;      /* memory: commit of the last record, and the bell */
byte buffered_published;             /* store buffer of the writer; 0: empty */
byte buffered_sleeping[READERS];     /* store buffer of a reader: how much it adds to `sleeping` */
bool asleep[READERS];

/* Each processor writes its buffer out at some time. */
active proctype WriterBuffer() {
end:
  do
  :: atomic { buffered_published != 0 -> published = buffered_published; buffered_published = 0 }
  od
}
active [READERS] proctype ReaderBuffer() {
  byte me = _pid - 1;
end:
  do
  :: atomic { buffered_sleeping[me] != 0 -> sleeping++; buffered_sleeping[me] = 0 }
  od
}

active proctype Writer() {
  byte sent = 0;
  do
  :: sent == RECORDS -> break
  :: sent < RECORDS ->
    sent++;
    atomic { buffered_published == 0 || !WRITER_FENCE -> buffered_published = sent };      /* Commit */
    if
    :: WRITER_FENCE -> atomic { (buffered_published == 0) }
    :: !WRITER_FENCE -> skip
    fi;
    if
    :: sleeping > 0 ->
      word++;
      atomic { asleep[0] = false; asleep[1] = false }    /* futex wake, all */
    :: else -> skip
    fi
  od
}

/* Waits until it has seen every record. */
active [READERS] proctype Reader() {
  byte me = _pid - 1 - READERS - 1, token;
  do
  :: published == RECORDS -> break
  :: published < RECORDS ->
    token = word;                                        /* AnnounceSleep */
    buffered_sleeping[me] = 1;
    if
    :: READER_FENCE -> atomic { (buffered_sleeping[me] == 0) }
    :: !READER_FENCE -> skip
    fi;
    if
    :: published == RECORDS -> skip                      /* one more look */
    :: else ->
      atomic {                                           /* futex wait: compares and sleeps in one step */
        if
        :: word == token -> asleep[me] = true
        :: else -> skip
        fi
      };
      !asleep[me]
    fi;
    atomic { buffered_sleeping[me] == 0 -> sleeping-- }  /* EndSleep */
  od
}
