//! The words that prompts are made of: short and frequent, mostly one token each.

use std::sync::LazyLock;

/// The words, in the order of the alphabet; no two are equal.
pub(crate) static WORDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| TEXT.split_whitespace().collect());

/// Changing it changes every plan.
const TEXT: &str = "
able about above across act add after again age ago air all also always among amount angle animal
answer any appear apple area arm army around art ask atom away baby back bad ball band bank base
bath bear beat beauty bed been before began behind being bell best better between big bird bit
black block blood blow blue board boat body bone book born both bottom bought box boy bread break
bright bring broad broken brother brown build burn busy but buy call came camp can capital captain
car card care carry case cat catch cause cell cent center certain chair chance change check chief
child choose church circle city claim class clean clear climb clock close cloth cloud coast coat
cold color column come company compare complete condition consider contain continue control cook
cool copper corn corner correct cost cotton could count country course cover cow create crop cross
crowd cry current cut dance danger dark day dead deal dear death decide deep degree depend
describe desert design determine develop die differ direct discuss distance divide doctor dog
dollar door double down draw dream dress drink drive drop dry duck during each ear early earth
ease east eat edge effect egg eight either element else end enemy energy engine enough enter equal
even evening event ever every exact example except excite exercise expect experience experiment
eye face fact fair fall family famous far farm fast fat father favor fear feed feel feet fell few
field fight figure fill final find fine finger finish fire first fish fit five flat floor flow
flower fly follow food foot for force forest form forward found four fraction free fresh friend
from front fruit full fun game garden gas gather gave general gentle get girl give glad glass go
gold gone good got govern grand grass gray great green grew ground group grow guess guide gun hair
half hand happen happy hard has hat have he head hear heart heat heavy held help her here high
hill him his history hit hold hole home hope horse hot hour house how huge human hundred hunt
hurry ice idea if imagine inch include indicate industry insect instant instrument interest invent
iron island job join joy jump just keep kept key kill kind king knew know lady lake land language
large last late laugh law lay lead learn least leave left leg length less let letter level lie
life lift light like line liquid list listen little live locate log lone long look lost lot loud
love low machine made magnet main major make man many map mark market mass master match material
matter may mean meant measure meat meet melody men metal method middle might mile milk million
mind mine minute miss mix modern molecule moment money month moon more morning most mother motion
mount mountain mouth move much multiply music must name nation natural nature near neck need never
new next night nine noise noon north nose note nothing notice noun now number object observe occur
ocean off offer office often oil old once one only open operate opposite orange order original
other our out over own oxygen page paint pair paper paragraph parent part particular party pass
past path pattern pay people perhaps period person phrase pick picture piece pitch place plain
plan plane planet plant play please plural poem point poor populate port pose position possible
post pound power practice prepare present press pretty print probable problem product proper
protect prove provide pull push put quart question quick quiet quite race radio rail rain raise
ran range rather reach read ready real reason receive record red region remember repeat reply
represent require rest result rich ride right ring rise river road rock roll room root rope rose
round row rub rule run safe sail salt same sand sat save saw say scale school science score sea
search season seat second section see seed seem segment select self sell send sense sent sentence
separate serve set settle seven several shape share sharp sheet shell shine ship shoe shop shore
short should shoulder shout show side sight sign silent silver similar simple since sing single
sister sit six size skill skin sky sleep slip slow small smell smile snow soft soil soldier
solution solve some son song soon sound south space speak special speech speed spell spend spoke
spot spread spring square stand star start state station stay stead steam steel step stick still
stone stood stop store story straight strange stream street stretch string strong student study
subject substance success such sudden suffix sugar suggest suit summer sun supply support sure
surface surprise swim symbol system table tail take talk tall teach team tell temperature ten term
test than thank that the their them then there these they thick thin thing think third this those
though thought thousand three through throw thus tie time tiny tire together told tone too took
tool top total touch toward town track trade train travel tree triangle trip trouble truck true
try tube turn twenty two type under unit until use usual valley value vary verb very view village
visit voice vowel wait walk wall want war warm wash watch water wave way wear weather week weight
well went were west what wheel when where which while white whole whose why wide wife wild will
win wind window wing winter wire wish with woman women wonder wood word work world would write
wrong yard year yellow yes yet you young your
";
