// The words that made-up titles and overviews consist of, frequent ones first.

/// Two languages: words, and syllables of names that no dictionary holds.
enum Words {
    static let english = split(
        """
        the a of and to in his her with for is who an on by from their as when that must he she they it into
        but at after young man woman life family world love story find new one two war city town police
        detective father mother son daughter friend friends home secret past night school murder girl boy
        years becomes takes discovers struggles begins returns falls forced journey against between while
        where only before together former group help save power evil death dark lost mysterious small
        American Korean Seoul London Paris village island ocean river mountain winter summer crime gang
        thief money escape killer ghost haunted house dream memory truth revenge justice betrayal marriage
        wedding divorce teacher student doctor nurse soldier officer captain king queen prince princess
        kingdom ancient magic dragon robot alien planet space ship crew mission agent spy government
        conspiracy virus outbreak survivors zombie vampire witch curse ritual priest church faith god devil
        musician singer band concert dancer artist painter writer novel book letter film actor actress
        director studio stage fame boxer football coach team champion race driver car train plane crash
        accident hospital prison guard inmate lawyer judge trial reporter newspaper scandal politician
        election president rebel revolution army battle enemy ally border refugee immigrant farm farmer
        horse dog cat wolf bear shark forest desert jungle storm flood earthquake fire rescue hope fear
        courage destiny comedy drama thriller adventure unexpected dangerous beautiful lonely wealthy poor
        brilliant ruthless legendary forbidden childhood teenage elderly brother sister twins cousin uncle
        aunt grandmother neighbor stranger lover husband wife boss partner
        """)

    static let korean = split(
        """
        그 이 한 그녀 그는 그리고 하지만 어느 날 사람 사랑 이야기 가족 아버지 어머니 아들 딸 친구 학교 선생님
        학생 형사 경찰 사건 살인 범인 비밀 과거 밤 서울 부산 도시 마을 바다 섬 산 겨울 여름 전쟁 군인 왕
        왕자 공주 나라 조선 시대 복수 배신 진실 거짓 기억 꿈 희망 두려움 운명 죽음 유령 귀신 저주 악마 신부
        의사 간호사 병원 감옥 변호사 재판 기자 회사 사장 동료 연인 결혼 이혼 남편 아내 형 동생 누나 우연히
        갑자기 다시 함께 마침내 점점 위험한 아름다운 외로운 평범한 천재 소년 소녀 청춘 여행 떠난다 만난다
        찾아온다 시작된다 빠진다 돌아온다 지키기 위해 싸운다 밝혀진다 사라진다 살아남기 위한 숨겨진 새로운 마지막
        영화 배우 가수 음악 무대 경기 우승 코치 팀 로봇 우주 외계인
        """)

    static let englishSyllables = split(
        """
        an bel cor dan el fa gar hal is jo ka lin mar nor ol per quin ros sa tor ul ven wil yan ze
        """)

    static let koreanSyllables = split(
        """
        김 이 박 최 정 강 조 윤 장 임 서 민 지 수 현 영 준 은 성 진 호 아 연 우 하 경 태 동 재 혜
        """)

    private static func split(_ text: String) -> [[UInt8]] {
        text.split { $0 == " " || $0 == "\n" }.map { Array($0.utf8) }
    }
}
