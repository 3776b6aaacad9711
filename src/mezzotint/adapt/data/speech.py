"""How a request is put: articles, courtesy, capitals, full stops, and several in one breath."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mezzotint.adapt.data.values import Scene

_ARTICLE = re.compile(r"a~ (?=(?!one|uni|us|eu)([aeiou])?)", re.IGNORECASE)
_ASKING = re.compile(r"(what|how|who|where|when|is|are|am|will|do|did|does|any)\b", re.IGNORECASE)
_ORDER = re.compile(
    r"(add|append|apply|arm|book|brew|call|cancel|caption|change|charge|check|clean|compress|convert|"
    r"create|cut|delete|dial|dim|divide|drop|email|enter|export|find|forward|get|give|google|invite|"
    r"keep|launch|list|lock|log|look|mail|make|mark|move|mute|navigate|open|order|pack|pass|pause|"
    r"phone|play|plan|put|read|record|register|remind|remove|rename|render|reschedule|reserve|run|"
    r"save|schedule|search|send|set|share|shift|show|shorten|silence|skip|snap|split|start|stop|"
    r"switch|take|tell|text|track|translate|trim|tune|turn|unlock|vacuum|wake|watch|water|work|write|"
    r"zip)\b"
)
_ORDER_ZH = re.compile(
    r"把|将|给.{1,8}(发|打|写|加|浇)|发|写|打|放|播|听|收听|创建|新建|添加|加上|安排|删|取消|去掉|查|找|"
    r"搜|列出|显示|看看|读|记|启动|导航|订|预订|叫|保存|移动|重命名|翻译|计算|算|提醒|设|定|倒计时|计时|"
    r"开始|停止|暂停|跳过|换|切|打扫|扫|清扫|清空|导出|渲染|剪|只保留|静音|拉黑|屏蔽|邀请|转发|压缩|锁|关|"
    r"呼叫|告诉|追踪|拍|照|用|充|浇|泡|调"
)


def articled(text: str) -> str:
    """English with "a~" become "a" or "an", as the next word begins."""
    return _ARTICLE.sub(lambda found: "an " if found[1] else "a ", text)


def joined(texts: Sequence[str], scene: Scene) -> str:
    """Several requests as one."""
    rng = scene.rng
    if scene.language == "zh":
        orders = all(_ORDER_ZH.match(text) for text in texts)
        return rng.choice(
            ["，然后", "，再", "，并且"] if orders else ["，还有，", "，另外，"]
        ).join(texts)
    if len(texts) == 3:
        return f"{texts[0]}, {texts[1]}{rng.choice([' and ', ', then ', ', and '])}{texts[2]}"
    return rng.choice([" and ", ", then ", " and then ", ". Also, ", ", and "]).join(texts)


def polished(text: str, scene: Scene) -> str:
    """`text` with a capital, a stop and a word of courtesy, as people have them or not."""
    rng = scene.rng
    stopped = text[-1] in ".?!。？！"
    if scene.language == "zh":
        openings = ["", "", "", "", "你好，"]
        if _ORDER_ZH.match(text) and not stopped and not text.endswith(("吗", "样", "么")):
            openings += ["请", "帮我", "麻烦"]
        return rng.choice(openings) + text + ("" if stopped else rng.choice(["", "", "", "。"]))
    openings = ["", "", "", "", "", "hey, "]
    question = _ASKING.match(text) is not None
    if _ORDER.match(text) and not question and not stopped:
        openings += ["please ", "can you ", "could you "]
    opening = rng.choice(openings)
    question = question or opening in ("can you ", "could you ")
    text = opening + text
    if rng.random() < 0.6:
        text = text[0].upper() + text[1:]
    return text + ("" if stopped else rng.choice(["?", "?", ""] if question else ["", "", "."]))
