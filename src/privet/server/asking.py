"""Asking: questions are planned, paid for and answered, for the API and for the pages alike.

A question takes its turn in a queue, then a thread. From its debit on it is watched: it ends at the deadline, and its
answer is recorded at a step of the ladder. What is stored leaves at once.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, TypeVar

from privet.dataset import Dataset
from privet.errors import LedgerBusy, LedgerError, PrivetError, UserError
from privet.ledger import Charge
from privet.payment import state_cost, unanswered
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.privacy.guarantees import PureDP
from privet.release import Release
from privet.release.batch import ReleasedBatch
from privet.requests import Request, batches, queries
from privet.server import reading
from privet.server.accounts import Accounts, Identity
from privet.server.call import in_thread
from privet.server.models import Batch, Question
from privet.server.pace import Deadlines, Ladder, Watch
from privet.server.plans import Plans
from privet.server.problems import Refusal
from privet.server.queue import Allowance, FairQueue, Full
from privet.server.settings import Settings
from privet.server.token_costs import cost
from privet.session import Session, pay
from privet.tables.schema import check_name

_T = TypeVar("_T")
_PLANNING, _PLANS_WAITING, _PLANS_EACH = 4, 256, 16
_WRITING, _UNBOUNDED = 2, 1_000_000  # the requests of an analyst are bounded: what is paid for is never refused here
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between looks at a request that runs in another process
_ENTRIES = 1000  # for stored answers, which cost nothing, for each analyst in a day: the ledger must not grow for ever
_KEPT = 30.0  # seconds that a question keeps its place after its request was told to come back
_BUSY = "Too many questions are waiting. Nothing was spent. Ask again, with the same Idempotency-Key"
_YOURS = "Too many of your questions are waiting. Nothing was spent. Ask again when one of them is answered"
_WAITING = "The question is still waiting for its turn. Nothing was spent. Ask again, with the same Idempotency-Key"
_NO_MORE = "Your account, or this token, may not do this any more. Nothing was spent"
_STOPPING = (
    "The server is stopping. If the question was paid for, the ledger says so. Ask again later, with the same "
    "Idempotency-Key"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that is planned: a batch if it has several."""

    plan: ReleasePlan | BatchPlan
    request_id: str | None
    """None if no key was sent."""
    fresh: bool
    stored: bool
    """Whether asking returns a stored answer, free of charge."""
    earlier: Charge | None
    """The debit of an earlier request with the same key."""
    request: Request[Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, with the id under which it can be had again, if it has one."""

    released: Release | ReleasedBatch
    request_id: str | None


@dataclass(frozen=True, slots=True)
class Running:
    """A question that is paid for, and not answered yet."""

    request_id: str


class Job:
    """A question that waits or runs in this process; retries with the same key wait for the same job."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.started = False
        """Whether it has left the queue: from then on it may be paid for at any moment."""
        self.paid: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[Answered] | None = None
        self.listeners = 0


class Asking:
    """Plans, pays for and answers questions."""

    def __init__(self, settings: Settings, accounts: Accounts) -> None:
        self.settings, self._accounts = settings, accounts
        self.plans = Plans()
        self._planning = FairQueue(_PLANNING, _PLANS_WAITING, _PLANS_EACH)
        self._writing = FairQueue(_WRITING, _UNBOUNDED, _UNBOUNDED)
        self._answering = FairQueue(settings.running, settings.waiting, settings.waiting_each)
        self._threads = ThreadPoolExecutor(settings.running, thread_name_prefix="privet-question")
        self._jobs: dict[tuple[str, str, str], Job] = {}
        self._stopping = Event()
        self._ladder, self._deadlines = Ladder(settings.pace), Deadlines()
        self._entries = Allowance(_ENTRIES, _ENTRIES / 86400)

    def session(self, dataset: Dataset, identity: Identity, paid: Callable[[], object] = lambda: None) -> Session:
        """The view of whoever asks; `paid` is called, in a thread, when a question is debited."""
        watch = Watch(self._ladder, self._deadlines, self.settings.deadline, self._stopping, paid)
        return Session.of(dataset, analyst=identity.person.name, watch=watch)

    # --- without paying ---------------------------------------------------------------------------

    async def planned(self, identity: Identity, work: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        """What some planning returns: in a thread, and in turn."""
        try:
            async with self._planning.slot(identity.person.name):
                return await in_thread(work, *arguments, **options)
        except Full as full:
            raise _full(full) from None

    async def written(self, identity: Identity, work: Callable[..., _T], *arguments: Any) -> _T:
        """What some work on an answer returns: in a thread and in turn, since large answers take long to write."""
        async with self._writing.slot(identity.person.name):
            return await in_thread(work, *arguments)

    # --- paying -----------------------------------------------------------------------------------

    async def ask(
        self,
        dataset: Dataset,
        identity: Identity,
        asked: Question | Batch,
        *,
        request_id: str | None,
        wait: float | None = None,
        gone: asyncio.Future[Any] | None = None,
    ) -> Answered | Running:
        """The answer to a question or a batch; if it takes longer than `wait` seconds, that it is running.

        If `gone` is done before the question is paid for, nobody wants the answer any more.
        """
        start = time.monotonic()
        longest = self.settings.wait if wait is None else min(wait, self.settings.wait)
        session = self.session(dataset, identity)
        try:
            prepared = await self.planned(identity, self._prepare, session, asked, request_id)
        except PrivetError as error:
            state_cost(error, PureDP.ZERO, debited=False)
            raise
        if prepared.earlier is not None:
            charge = await self._settled(dataset, prepared.earlier, start + longest)
            if charge.state == "running":
                assert prepared.request_id is not None
                return Running(prepared.request_id)
        if prepared.earlier is not None or prepared.stored:
            key = prepared.request_id
            if prepared.earlier is None and key is not None and not self._entries.take(identity.person.name):
                key = None
            released = await self.planned(identity, self._released, session, prepared, key)
            return Answered(released, key)
        job, made = self._job(dataset, identity, prepared)
        return await self._listen(job, made, start, longest, gone)

    def _prepare(self, session: Session, asked: Question | Batch, request_id: str | None) -> Prepared:
        key = None if request_id is None else check_name(request_id, "request id")
        request: Request[Any]
        plan: ReleasePlan | BatchPlan
        if isinstance(asked, Batch):
            questions, options = reading.batch(session, asked)
            plan = session.plan_all(questions, **options)
            request = batches.request(plan, questions)
        else:
            plan = reading.plan(session, asked, self.plans)
            request = queries.request(plan)
        earlier = None
        if key is not None:
            earlier = session.ledger.repeated(
                dataset=session.name,
                analyst=session.analyst,
                request_id=key,
                events=[request.event],
                asked=request.asked,
                version=session.version,
            )
        stored = not asked.fresh and earlier is None and session.paid_before(plan) is not None
        return Prepared(plan, key, asked.fresh, stored, earlier, request)

    def _released(self, session: Session, prepared: Prepared, request_id: str | None) -> Release | ReleasedBatch:
        """The answer, paid for or stored. An error says what was spent.

        It is paid for as it was planned: a batch that was planned anew could cost more than its token holds for it.
        """
        try:
            released: Release | ReleasedBatch = pay(session, prepared.request, request_id, fresh=prepared.fresh)
        except PrivetError as error:
            state_cost(error, prepared.plan.guarantee(), debited=session.debited)
            raise
        return released

    # --- questions that wait and run --------------------------------------------------------------

    def _job(self, dataset: Dataset, identity: Identity, prepared: Prepared) -> tuple[Job, str]:
        """The job of a question, which may be there already, and its request id."""
        request_id = prepared.request_id or uuid.uuid4().hex
        key = (dataset.name, identity.person.name, request_id)
        job = self._jobs.get(key)
        if job is not None and job.asked == prepared.request.asked:
            return job, request_id
        if job is not None:
            raise reading.reused(request_id)
        if self._stopping.is_set():
            raise Refusal(503, _STOPPING, headers={"Retry-After": "5"})
        job = Job(prepared.request.asked)
        job.task = asyncio.create_task(self._run(job, dataset, identity, prepared, request_id))
        self._jobs[key] = job
        job.task.add_done_callback(lambda task: self._end(key, task))
        return job, request_id

    def _end(self, key: tuple[str, str, str], task: asyncio.Task[Answered]) -> None:
        del self._jobs[key]
        if not task.cancelled():
            task.exception()  # it was told to whoever listened

    async def _run(
        self, job: Job, dataset: Dataset, identity: Identity, prepared: Prepared, request_id: str
    ) -> Answered:
        loop = asyncio.get_running_loop()
        session = self.session(dataset, identity, lambda: loop.call_soon_threadsafe(job.paid.set_result, None))
        try:
            async with self._answering.slot(identity.person.name):
                job.started = True
                pay = partial(self._pay, session, identity, prepared, request_id)
                work = loop.run_in_executor(self._threads, copy_context().run, pay)
                released = await asyncio.shield(work)
        except Full as full:
            raise _full(full) from None
        return Answered(released, request_id)

    def _pay(
        self, session: Session, identity: Identity, prepared: Prepared, request_id: str
    ) -> Release | ReleasedBatch:
        """In a thread, perhaps after a long wait. What the token may spend is held, and given back without a debit."""
        if not self._accounts.still_asks(identity, session.name):
            raise Refusal(403, _NO_MORE)
        token = identity.token
        held = None if token is None or token.max_epsilon is None else cost(prepared.plan, session.dataset.budget)
        if token is not None and held is not None:
            self._accounts.hold(token.id, held)
        unknown = False
        try:
            return self._released(session, prepared, request_id)
        except LedgerError as error:  # it may have failed after the debit
            unknown = not isinstance(error, LedgerBusy)
            raise
        except SystemExit:  # the engine was stopped, since the server stops
            raise Refusal(503, _STOPPING, headers={"Retry-After": "5"}) from None
        finally:
            if token is not None and held is not None and not session.debited and not unknown:
                self._accounts.give_back(token.id, held)

    async def _listen(
        self, job: Job, request_id: str, start: float, longest: float, gone: asyncio.Future[Any] | None
    ) -> Answered | Running:
        """The result of a job; or that it is running, after so many seconds."""
        task = job.task
        assert task is not None
        job.listeners += 1
        try:
            await _any(start + self.settings.wait, task, job.paid, gone)
            if not task.done() and not job.started:
                raise Refusal(503, _WAITING, headers={"Retry-After": "1"})
            await _any(math.inf, task, job.paid)
            await _any(start + longest, task)
            if task.done():
                return task.result()
            return Running(request_id)
        except asyncio.CancelledError:
            if task.cancelled():  # while it was waiting
                raise Refusal(503, _STOPPING, headers={"Retry-After": "5"}) from None
            raise
        finally:
            job.listeners -= 1
            if not job.listeners and not job.started:
                asyncio.get_running_loop().call_later(_KEPT, _forget, job)

    async def _settled(self, dataset: Dataset, charge: Charge, until: float) -> Charge:
        """An earlier debit as soon as it is settled; still running, if that takes too long.

        It is looked at even if nobody waits: a look gives up the questions of processes that ended.
        """
        pause = _FIRST_PAUSE
        while charge.state == "running":
            charge = await in_thread(dataset.ledger.look, charge)
            left = until - time.monotonic()
            if left <= 0:
                break
            if charge.state == "running":
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
        return charge

    # --- answers to earlier requests --------------------------------------------------------------

    async def answer(
        self, dataset: Dataset, identity: Identity, request_id: str, *, wait: float | None = None
    ) -> Answered | Running | None:
        """The answer to a request of whoever asks; None if there is no such request."""
        longest = self.settings.wait if wait is None else min(wait, self.settings.wait)
        try:
            name = check_name(request_id, "request id")
        except UserError:
            return None
        who = {"dataset": dataset.name, "analyst": identity.person.name, "request_id": name}
        charge = await in_thread(dataset.ledger.request, **who)
        if charge is None:
            return None
        charge = await self._settled(dataset, charge, time.monotonic() + longest)
        if charge.state == "running":
            return Running(request_id)
        if charge.answer is None:
            raise unanswered(charge)
        session = self.session(dataset, identity)
        return Answered(await self.planned(identity, reading.reopened, session, charge.answer), request_id)

    # --- the end ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more questions, and drop those that wait; answers that are held leave."""
        self._stopping.set()
        for job in list(self._jobs.values()):
            if not job.started and job.task is not None:
                job.task.cancel()

    async def ended(self, seconds: float) -> bool:
        """Wait until the running questions are settled; returns whether they are."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return not self._jobs


def _full(full: Full) -> Refusal:
    return Refusal(429 if full.yours else 503, _YOURS if full.yours else _BUSY, headers={"Retry-After": "1"})


def _forget(job: Job) -> None:
    """Take a question from the queue that nobody has come back for."""
    if not job.listeners and not job.started and job.task is not None:
        job.task.cancel()


async def _any(until: float, *futures: asyncio.Future[Any] | None) -> None:
    """Wait until one of these is done, or it is too late."""
    if any(each is not None and each.done() for each in futures):
        return
    left = None if until == math.inf else max(0.0, until - time.monotonic())
    await asyncio.wait([each for each in futures if each is not None], timeout=left, return_when="FIRST_COMPLETED")
