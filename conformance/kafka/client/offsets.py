"""Where a record is, by timestamp or leader epoch: ListOffsets in any version, and OffsetForLeaderEpoch."""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client.answers import ISOLATION_LEVELS, Answer, EpochEnd, Isolation, OffsetAnswer, Question
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import PASSING
from conformance.kafka.client.topics import TopicRequests
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""The replica id whose questions a follower answers too, out of its own files (``ListOffsetsRequest.java``)."""
LATEST: Final = -1
EARLIEST: Final = -2


class LookUp(NamedTuple):
    """One request: see :meth:`OffsetRequests.ask_offsets`."""

    questions: tuple[Question, ...]
    version: int
    isolation: Isolation = "read_uncommitted"
    replica_id: int = CONSUMER


class OffsetRequests(TopicRequests):
    """What looks up offsets."""

    def ask_offsets(
        self,
        questions: Sequence[Question],
        *,
        version: int | None = None,
        isolation: Isolation = "read_uncommitted",
        replica_id: int = CONSUMER,
    ) -> list[OffsetAnswer]:
        """Ask all questions in one request, and return what is in the answer, in its order.

        A partition may be asked for twice and need not exist: what the broker makes of that is its answer.

        Args:
            questions: questions about one topic stand together in the request while they follow one another.
            version: of the request, by default 5. Isolation levels go with 2 and later, leader epochs with 4 and later.
            isolation: for all questions.
            replica_id: -1 for a consumer, -2 for a debugging one, else a follower.

        Raises:
            NotOfferedError: the broker does not offer that version.
        """
        return self._offset_answers(self._ask(self._offsets_request(questions, version, isolation, replica_id)))

    def ask_each(self, requests: Iterable[LookUp]) -> Iterator[list[OffsetAnswer]]:
        """Send each request, many at a time, and give what is in the answer of each, in order."""
        made = (
            self._offsets_request(each.questions, each.version, each.isolation, each.replica_id) for each in requests
        )
        return map(self._offset_answers, self._ask_all(made))

    def list_offset(
        self,
        topic: str,
        target: int,
        isolation: Isolation = "read_uncommitted",
        *,
        version: int | None = None,
        partition: int = 0,
        replica_id: int = CONSUMER,
        leader_epoch: int = -1,
    ) -> Answer:
        """Ask for a timestamp, or one of the special ones; an error is an answer too."""
        question = Question(topic, target, partition, leader_epoch)
        found = self.ask_offsets([question], version=version, isolation=isolation, replica_id=replica_id)
        answer: OffsetAnswer = self._only(found, "partitions")
        return answer.to_answer(target)

    def answers(
        self,
        topic: str,
        targets: Sequence[int],
        isolation: Isolation = "read_uncommitted",
        *,
        version: int | None = None,
        partition: int = 0,
        replica_id: int = CONSUMER,
    ) -> list[Answer]:
        """Ask for each target in a request of its own, many at a time, and return the answers in order."""
        requests = (
            self._offsets_request([Question(topic, target, partition)], version, isolation, replica_id)
            for target in targets
        )
        responses = self._ask_all(requests)
        return [
            self._only(self._offset_answers(response), "partitions").to_answer(target)
            for target, response in zip(targets, responses, strict=True)
        ]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return the offset of the next record that a consumer could get.

        Raises:
            RefusedError: the broker does not lead the partition, or does not know it.
        """
        found = self.list_offset(topic, LATEST, partition=partition)
        if found.offset is None:
            raise self._refused(f"say where {topic} ends", found.error or "no offset")
        return found.offset

    def await_leader(self, topic: str, partition: int = 0) -> int:
        """Return the epoch of the leader, once it also answers; after a start these are two moments.

        Raises:
            RefusedError: it does not lead.
            NoAnswerError: it does not lead within the time limit.
        """
        deadline = Deadline(self.limit)
        while True:
            epoch = self.leader_epoch(topic, partition)
            answer = self.list_offset(topic, LATEST, partition=partition)
            if answer.leader_epoch == epoch:
                return epoch
            if answer.error not in PASSING and answer.leader_epoch is None:
                raise self._refused(f"lead {topic}", answer.error or str(answer))
            if not deadline.pause():
                raise self._late(f"lead {topic}")

    def epoch_end(
        self, topic: str, leader_epoch: int, *, partition: int = 0, replica_id: int = CONSUMER, current_epoch: int = -1
    ) -> EpochEnd:
        """Ask where a leader epoch ends, for a reader that believes in ``current_epoch``."""
        kind = request_class("OffsetForLeaderEpoch")
        part = kind.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current_epoch, leader_epoch=leader_epoch
        )
        wanted = kind.OffsetForLeaderTopic(topic=topic, partitions=[part])
        response = self._ask(self._request("OffsetForLeaderEpoch", replica_id=replica_id, topics=[wanted]))
        found = self._only(self._only(response.topics, "topics").partitions, "partitions")
        return EpochEnd(found.leader_epoch, found.end_offset, error_name(found.error_code))

    def _offsets_request(
        self, questions: Sequence[Question], version: int | None, isolation: Isolation, replica_id: int
    ) -> Any:
        entry = request_class("ListOffsets").ListOffsetsTopic
        topics = [
            entry(
                name=topic,
                partitions=[
                    entry.ListOffsetsPartition(
                        partition_index=each.partition, current_leader_epoch=each.leader_epoch, timestamp=each.target
                    )
                    for each in group
                ],
            )
            for topic, group in itertools.groupby(questions, attrgetter("topic"))
        ]
        return self._request(
            "ListOffsets",
            version=version,
            replica_id=replica_id,
            isolation_level=ISOLATION_LEVELS[isolation],
            topics=topics,
            timeout_ms=self._limit_ms,
        )

    @staticmethod
    def _offset_answers(response: Any) -> list[OffsetAnswer]:
        return [
            OffsetAnswer(
                topic.name,
                part.partition_index,
                error_name(part.error_code),
                part.offset,
                part.timestamp,
                part.leader_epoch,
                tuple(part.old_style_offsets or ()),
            )
            for topic in response.topics or ()
            for part in topic.partitions or ()
        ]
